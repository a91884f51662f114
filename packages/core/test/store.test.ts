import { type ChatSnapshot, ChatStore, type ChatStoreOptions } from '@countersign/core'
import { fullSteps } from '@countersign/core/ag-ui'
import { expect, test } from 'vitest'
import {
  answer,
  args,
  ask,
  call,
  closed,
  custom,
  end,
  opened,
  pending,
  result,
  runFinished,
  runStarted,
  type Step,
  says,
  start,
  text,
  textDelta,
  textStart,
  user,
} from './support.js'

function watched(options: Partial<ChatStoreOptions> = {}) {
  const store = new ChatStore({ threadId: 'thread', moreSteps: fullSteps, ...options })
  const log: string[] = []
  store.subscribe(() => log.push('all'))
  const send = (...steps: readonly Step[]) => {
    for (const event of steps) store.dispatch(event, (effect) => log.push(effect.type))
  }
  const taken = () => log.splice(0)
  return { store, send, taken }
}

/** A scheduler that the test runs by hand. */
function byHand() {
  const waiting = new Set<() => void>()
  const schedule = (flush: () => void) => {
    waiting.add(flush)
    return () => waiting.delete(flush)
  }
  const tick = () => {
    for (const flush of [...waiting]) {
      waiting.delete(flush)
      flush()
    }
  }
  return { schedule, waiting, tick }
}

test('growth of text, reasoning and arguments is scheduled, once; everything else is published at once', () => {
  const { schedule, waiting, tick } = byHand()
  const { send, taken } = watched({ schedule })
  const atOnce: Step[][] = [
    [says('u1')],
    [opened()],
    [runStarted()],
    [textStart('a1')],
    [start('c1')],
    [args('c1', '{"path":"/a"')],
  ]
  for (const steps of atOnce) {
    send(...steps)
    expect(taken()).toEqual(['all'])
  }
  send(args('c1', '}'), args('c1', ' '), args('c1', ' '))
  expect([taken(), waiting.size]).toEqual([[], 1])
  tick()
  expect([taken(), waiting.size]).toEqual([['all'], 0])
  for (const event of [end('c1'), ask('c1'), answer('approval_c1'), result('c1'), runFinished(), closed]) {
    send(event)
    expect(taken().filter((entry) => entry === 'all')).toEqual(['all'])
  }
  send({ type: 'REASONING_MESSAGE_START', messageId: 'r1', role: 'reasoning' })
  taken()
  send({ type: 'REASONING_MESSAGE_CONTENT', messageId: 'r1', delta: 'x' })
  expect([taken(), waiting.size]).toEqual([[], 1])
})

test('the first text of a message is a change, what follows is growth', () => {
  const { schedule } = byHand()
  const { send, taken } = watched({ schedule })
  send(textStart('a1'))
  taken()
  send(textDelta('a1', 'x'))
  expect(taken()).toEqual(['all'])
  send(textDelta('a1', 'y'))
  expect(taken()).toEqual([])
})

test('a change publishes the growth that waits, and calls its turn off', () => {
  const { schedule, waiting } = byHand()
  const { store, send, taken } = watched({ schedule })
  send(...text('a1', 'x').slice(0, 2), textDelta('a1', 'y'))
  taken()
  send(start('c1'))
  expect([taken(), waiting.size]).toEqual([['all'], 0])
  send(textDelta('a1', 'z'), textDelta('a1', '!'))
  taken()
  store.flush()
  expect([taken(), waiting.size]).toEqual([['all'], 0])
  store.flush()
  expect(taken()).toEqual([])
})

test('a warning in the middle of growth neither publishes nor loses it', () => {
  const { schedule, waiting, tick } = byHand()
  const { send, taken } = watched({ schedule })
  send(textStart('a1'), textDelta('a1', 'x'), textDelta('a1', 'y'))
  taken()
  send(args('nobody', 'x'))
  expect([taken(), waiting.size]).toEqual([['warning'], 1])
  tick()
  expect(taken()).toEqual(['all'])
})

test('without a scheduler growth is published at once', () => {
  const { send, taken } = watched()
  send(textStart('a1'), textDelta('a1', 'x'), textDelta('a1', 'y'))
  expect(taken()).toEqual(['all', 'all', 'all'])
})

test('S4.18 messages-change comes first, then the request is told, once', () => {
  const { schedule } = byHand()
  const { store, send, taken } = watched({ schedule })
  send(...call('c1'))
  taken()
  let shown: ChatSnapshot | undefined
  store.dispatch(ask('c1'), () => {
    shown = store.getSnapshot()
  })
  expect(taken()).toEqual(['all'])
  expect(shown?.pendingApprovals.map(({ id }) => id)).toEqual(['c1'])
  send(ask('c1'))
  expect(taken()).toEqual([])
})

test('S4.20 a step that changes nothing tells nobody and keeps the snapshot', () => {
  const { store, send, taken } = watched()
  send(...pending('c1'))
  taken()
  const before = store.getSnapshot()
  const ids = store.messageIds
  for (const step of [
    answer('nobody'),
    ask('c1'),
    ask('nobody'),
    result('nobody'),
    args('c1', 'x'),
    custom('mine', 1),
  ]) {
    send(step)
    expect(taken()).not.toContain('all')
    expect(store.getSnapshot()).toBe(before)
  }
  expect(store.messageIds).toBe(ids)
})

test('getSnapshot is always current, also between publications, and the same object until the next change', () => {
  const { schedule } = byHand()
  const { store, send } = watched({ schedule })
  const empty = store.getSnapshot()
  expect(store.getSnapshot()).toBe(empty)
  expect(empty).toMatchObject({
    messages: [],
    status: 'ready',
    isLoading: false,
    threadId: 'thread',
    queue: [],
  })
  send(textStart('a1'), textDelta('a1', 'x'), textDelta('a1', 'y'))
  const now = store.getSnapshot()
  expect(now.messages).toMatchObject([{ parts: [{ text: 'xy' }] }])
  expect(store.getSnapshot()).toBe(now)
  expect(store.getMessage('a1')).toBe(now.messages[0])
  expect(store.getMessage('nobody')).toBeUndefined()
})

test('status follows the run, the error and what waits for the person', () => {
  const { store, send } = watched()
  const status = (...steps: readonly Step[]) => {
    send(...steps)
    return store.getSnapshot().status
  }
  expect(status(opened())).toBe('submitted')
  expect(status(runStarted())).toBe('streaming')
  expect(status(...pending('c1'))).toBe('streaming')
  expect(status(runFinished(), closed)).toBe('awaiting-approval')
  expect(status(answer('approval_c1'))).toBe('ready')
  const error = { type: 'RUN_ERROR', message: 'x' } as const
  expect(status(error)).toBe('error')
  expect(status(opened('run-2'))).toBe('submitted')
})

test('a listener that acts: the act applies at once, its notification follows the present round', () => {
  const { store, taken, send } = watched()
  const log: string[] = []
  store.subscribe(() => {
    log.push(`first ${store.getSnapshot().messages.length}`)
    if (store.getSnapshot().messages.length === 1) {
      store.dispatch(says('u2'))
      log.push(`acted ${store.getSnapshot().messages.length}`)
    }
  })
  store.subscribe(() => log.push(`second ${store.getSnapshot().messages.length}`))
  send(says('u1'))
  expect(log).toEqual(['first 1', 'acted 2', 'second 2', 'first 2', 'second 2'])
  expect(taken()).toEqual(['all', 'all'])
})

test('callbacks come after every listener has heard, also of what a listener did', () => {
  const { store, send, taken } = watched()
  send(...call('c1'))
  taken()
  const log: string[] = []
  let acted = false
  store.subscribe(() => {
    log.push('listener')
    if (acted) return
    acted = true
    store.dispatch(custom('mine', 1), () => log.push('mine'))
  })
  store.dispatch(ask('c1'), () => log.push('asked'))
  expect(log).toEqual(['listener', 'asked', 'mine'])
})

test('a callback may act', () => {
  const { store, send } = watched()
  send(...call('c1'))
  store.dispatch(ask('c1'), () => store.dispatch(answer('approval_c1')))
  expect(store.getSnapshot().messages).toMatchObject([{ parts: [{ state: 'approval-responded' }] }])
})

test('a throwing listener or callback stops nobody, and is reported', () => {
  const errors: unknown[] = []
  const { store, send, taken } = watched({ onListenerError: (error) => errors.push(error) })
  let last = 0
  store.subscribe(() => {
    throw new Error('listener')
  })
  store.subscribeMessage('u1', () => {
    throw new Error('message listener')
  })
  store.subscribe(() => last++)
  send(says('u1'))
  store.dispatch(custom('mine', 1), () => {
    throw new Error('callback')
  })
  send(says('u2'))
  expect([last, taken()]).toEqual([2, ['all', 'all']])
  expect(errors.map(String)).toEqual([
    'Error: message listener',
    'Error: listener',
    'Error: callback',
    'Error: listener',
  ])
})

test('where the report of a throwing listener throws too, listeners still hear of what comes afterwards', () => {
  const { store, send } = watched({
    onListenerError: (error) => {
      throw error
    },
  })
  let told = 0
  const leave = store.subscribe(() => {
    throw new Error('listener')
  })
  expect(() => send(says('u1'))).toThrow('listener')
  leave()
  store.subscribe(() => told++)
  send(says('u2'))
  expect(told).toBe(1)
})

test('a listener that leaves during a round is not called any more; one that joins is called from the next on', () => {
  const { store, send } = watched()
  const log: string[] = []
  const leave = store.subscribe(() => {
    log.push('a')
    leave()
    other()
    store.subscribe(() => log.push('new'))
  })
  const other = store.subscribe(() => log.push('b'))
  send(says('u1'))
  expect(log).toEqual(['a'])
  send(says('u2'))
  expect(log).toEqual(['a', 'new'])
})

test('the same listener twice is called twice and leaves twice', () => {
  const { store, send } = watched()
  let calls = 0
  const listener = () => {
    calls++
  }
  const leave = [store.subscribe(listener), store.subscribe(listener)]
  send(says('u1'))
  expect(calls).toBe(2)
  leave[0]?.()
  leave[0]?.()
  send(says('u2'))
  expect(calls).toBe(3)
  leave[1]?.()
  send(says('u3'))
  expect(calls).toBe(3)
})

test('subscribeMessage hears of its message alone: coming, changing, going', () => {
  const { store, send } = watched()
  let calls = 0
  const leave = store.subscribeMessage('a1', () => calls++)
  const heard = (...steps: readonly Step[]) => {
    calls = 0
    send(...steps)
    return calls
  }
  expect(heard(says('u1'), textStart('a2'), textDelta('a2', 'x'))).toBe(0)
  expect(heard(textStart('a1'))).toBe(1)
  expect(heard(textDelta('a1', 'x'))).toBe(1)
  expect(heard(textDelta('a1', 'x'), textDelta('a1', 'x'))).toBe(2)
  expect(heard(textDelta('a2', 'x'))).toBe(0)
  expect(heard(...pending('c1'))).toBe(4)
  expect(heard(answer('approval_c1'))).toBe(1)
  expect(heard({ type: 'truncate', messageId: 'u1' })).toBe(1)
  leave()
  expect(heard(textStart('a1'))).toBe(0)
})

test('subscribeMessage hears when reasoning moves to the message that follows it', () => {
  const { store, send } = watched()
  const log: string[] = []
  store.subscribeMessage('r1', () => log.push(`r1 ${store.getMessage('r1') ? 'there' : 'gone'}`))
  store.subscribeMessage('a1', () => log.push(`a1 ${store.getMessage('a1') ? 'there' : 'gone'}`))
  send({ type: 'REASONING_MESSAGE_START', messageId: 'r1', role: 'reasoning' }, textStart('a1'))
  expect(log).toEqual(['r1 there', 'r1 gone', 'a1 there'])
})

test('messageIds keeps its identity while none comes or goes', () => {
  const { store, send } = watched()
  send(says('u1'), textStart('a1'))
  const ids = store.messageIds
  expect(ids).toEqual(['u1', 'a1'])
  send(textDelta('a1', 'x'), ...pending('c1'), answer('approval_c1'), result('c1'))
  send({ type: 'truncate', messageId: 'a1' })
  send({
    type: 'MESSAGES_SNAPSHOT',
    messages: [
      { id: 'u1', role: 'user', content: '?' },
      { id: 'a1', role: 'assistant' },
    ],
  })
  expect(store.messageIds).toBe(ids)
  send(says('u2'))
  expect(store.messageIds).toEqual(['u1', 'a1', 'u2'])
  expect(ids).toEqual(['u1', 'a1'])
})

test('pendingApprovals, interrupts, queue and untouched messages keep their identity across snapshots', () => {
  const { store, send } = watched()
  send(says('u1'), ...pending('c1'), textStart('a2'))
  const before = store.getSnapshot()
  send(textDelta('a2', 'x'), ...call('c2', {}, { parentMessageId: 'a2' }))
  const after = store.getSnapshot()
  expect(after).not.toBe(before)
  expect(after.pendingApprovals).toBe(before.pendingApprovals)
  expect(after.interrupts).toBe(before.interrupts)
  expect(after.queue).toBe(before.queue)
  expect([after.messages[0] === before.messages[0], after.messages[1] === before.messages[1]]).toEqual([
    true,
    true,
  ])
  send(answer('approval_c1'))
  expect(store.getSnapshot().pendingApprovals).toEqual([])
})

test('initial messages are there from the start and nobody is told of them', () => {
  const messages = [user('u1')]
  const { store, taken } = watched({ messages })
  expect(store.getSnapshot().messages).toEqual(messages)
  store.flush()
  expect(taken()).toEqual([])
})

test('two stores do not know of one another', () => {
  const a = watched()
  const b = watched()
  for (const { send } of [a, b]) send(...pending('c1'))
  a.send(answer('approval_c1'))
  expect(b.store.getSnapshot().pendingApprovals).toHaveLength(1)
})

test('batch: everything is applied before anybody is told, callbacks included', () => {
  const { store, send, taken } = watched()
  send(...call('c1'))
  taken()
  const answered = store.batch(() => {
    send(ask('c1'), answer('approval_c1'), says('u1'))
    expect(taken()).toEqual([])
    return store.getSnapshot().messages.length
  })
  expect(answered).toBe(2)
  expect(taken()).toEqual(['all', 'approval-requested'])
})
