import type { AGUIEvent, Message, RunAgentInput } from '@countersign/core'
import {
  type Agent,
  type ApprovalOptions,
  answerResponse,
  handleChat,
  type Ledger,
  memoryAnswerChannel,
  memoryLedger,
  memoryRunLog,
  type RunOptions,
} from '@countersign/server'
import { expect, test, vi } from 'vitest'
import {
  answer,
  ask,
  call,
  collect,
  counted,
  fold,
  input,
  last,
  refusals,
  requests,
  results,
  say,
  testAgent,
  user,
} from './support.js'

/** A promise that the test settles. */
function gate() {
  let open: () => void = () => {}
  const passed = new Promise<void>((resolve) => {
    open = resolve
  })
  return { passed, open }
}

const yes = { approved: true }
const ann = { context: { subject: 'ann' } }

async function all<T>(source: AsyncIterable<T>): Promise<T[]> {
  const items: T[] = []
  for await (const item of source) items.push(item)
  return items
}

/** What a chat route streams, as events. */
async function* eventsOf(response: Response): AsyncGenerator<AGUIEvent> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  for (;;) {
    const { done, value } = (await reader?.read()) ?? { done: true, value: undefined }
    if (done) return
    text += value
    const frames = text.split('\n\n')
    text = frames.pop() ?? ''
    for (const frame of frames) {
      const data = frame.split('\n').find((line) => line.startsWith('data: '))
      if (data !== undefined) yield JSON.parse(data.slice(6))
    }
  }
}

const post = (body: unknown, url = 'http://local/chat') =>
  new Request(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })

/** A run on a live channel over HTTP, answered as soon as it asks, by somebody with another context than the run's. */
async function answeredLive(
  confirm: ApprovalOptions['confirm'],
  opened: Record<string, unknown>,
  answering: Record<string, unknown>,
) {
  const send = counted('send', { needsApproval: true })
  const { agent } = testAgent([call(['c1', 'send', { to: 'a' }]), say('ok')], {
    tools: [send.tool],
    approvals: { confirm },
    runLog: memoryRunLog(),
    answerChannel: memoryAnswerChannel(),
  })
  const given = input([user('go')])
  const context = { subject: 'ann', ...opened }
  const response = await handleChat(agent, post(given), { context, live: true })
  const events: AGUIEvent[] = []
  for await (const event of eventsOf(response)) {
    events.push(event)
    const [asked] = requests([event])
    if (asked === undefined) continue
    const { threadId, runId } = given
    const resume = [answer(asked, { approved: true, proof: 'signed' })]
    const request = post({ threadId, runId, resume }, 'http://local/answer')
    const reply = await answerResponse(agent, request, { context: { subject: 'ann', ...answering } })
    expect(reply.status).toBe(200)
  }
  return { send, events }
}

test('F13 confirm of a live answer is asked with the context of the person who answers, not with that of the run', async () => {
  const seen: unknown[] = []
  const confirm: ApprovalOptions['confirm'] = (_, { context }) => {
    seen.push(context)
    return context.secondFactor === true
  }
  const stolen = await answeredLive(confirm, { secondFactor: true }, { secondFactor: false })
  expect(seen).toEqual([{ subject: 'ann', secondFactor: false }])
  expect(stolen.send.runs).toEqual([])
  expect(refusals(stolen.events)).toMatchObject([{ code: 'approval-not-yours' }])
  const proven = await answeredLive(confirm, {}, { secondFactor: true })
  expect(proven.send.runs).toEqual([{ to: 'a' }])
})

test('F13 confirm gets what a proof is checked against: payload, arguments, token and the request', async () => {
  const seen: unknown[] = []
  const send = counted('send', { needsApproval: true, allowEdits: true, message: 'Send it?' })
  const { agent } = testAgent([call(['c1', 'send', { to: 'a' }]), say('ok')], {
    tools: [send.tool],
    approvals: {
      confirm: (...given) => {
        seen.push(...given)
        return true
      },
    },
  })
  const { history, first } = await ask(agent, {}, ann)
  const payload = { approved: true, editedArgs: { to: 'b' }, reason: 'fine', proof: 'signed' }
  await collect(agent, input(history, { resume: [answer(first, payload)] }), ann)
  expect(seen).toEqual([
    {
      approvalId: first.approval.id,
      toolCallId: 'c1',
      toolName: 'send',
      decision: 'approve',
      scope: 'once',
      reason: 'fine',
      payload,
      arguments: { to: 'b' },
      token: first.approval.token,
      via: 'resume',
    },
    { context: ann.context, request: first },
  ])
  expect(send.runs).toEqual([{ to: 'b' }])
})

test('F13 an answer that the application puts into the queue without saying whose it is has no context', async () => {
  const { answerQueue } = await import('@countersign/server')
  for (const [given, runs] of [
    [undefined, 0],
    [{ secondFactor: true }, 1],
  ] as const) {
    const send = counted('send', { needsApproval: true })
    const { agent } = testAgent([call(['c1', 'send', {}]), say('ok')], {
      tools: [send.tool],
      approvals: { confirm: (_, { context }) => context.secondFactor === true },
    })
    const answers = answerQueue()
    const options: RunOptions = { context: { subject: 'ann', secondFactor: true }, answers }
    for await (const event of agent.run(input([user('go')]), options)) {
      const [asked] = requests([event])
      if (asked !== undefined) void answers.put(answer(asked, yes), given)
    }
    expect(send.runs.length).toBe(runs)
  }
})

/** A person's standing yes for `send`, and what the model then calls. */
async function granted(
  more: Parameters<typeof testAgent>[1] & { turn: ReturnType<typeof call> },
  ledger: Ledger = memoryLedger(),
) {
  const { turn, tools = [], ...options } = more
  const send = counted('send', { needsApproval: true, scopes: ['once', 'session'] })
  const { agent } = testAgent([call(['g1', 'send', {}]), say('ok'), turn, say('ok'), say('ok')], {
    ...options,
    tools: [send.tool, ...tools],
    approvals: { ...options.approvals, ledger },
  })
  const { history, first } = await ask(agent, {}, ann)
  const resume = [answer(first, { approved: true, scope: 'session' })]
  const done = fold(history, await collect(agent, input(history, { resume }), ann))
  send.runs.length = 0
  return { agent, send, given: input([...done, user('again')]) }
}

test('F14 a call whose session approval was ended while it waited for its turn asks again', async () => {
  const busy = gate()
  const slow = counted('slow', { execute: () => busy.passed.then(() => 'ok') })
  const { agent, send, given } = await granted({
    tools: [slow.tool],
    concurrency: 1,
    turn: call(['c1', 'slow', {}], ['c2', 'send', { n: 2 }]),
  })
  const running = collect(agent, given, ann)
  await expect.poll(() => slow.runs.length).toBe(1)
  // the gate has let the second call through by now: it waits behind the first
  await new Promise((resolve) => setImmediate(resolve))
  expect(await agent.grants.revoke('ann')).toBe(1)
  busy.open()
  const events = await running
  expect(send.runs).toEqual([])
  expect(requests(events)).toMatchObject([{ toolCallId: 'c2' }])
})

test('F14 a call whose session approval was ended behind a full buffer asks again', async () => {
  // some number of words of this length puts the end of the call right behind what fits into the buffer of 65,536 bytes
  for (let words = 20; words < 32; words++) {
    const delta = 'x'.repeat(1000)
    const text = Array.from({ length: words }, () => ({ type: 'text-delta', delta }) as const)
    const { agent, send, given } = await granted({ turn: [...text, ...call(['c1', 'send', {}])] })
    const run = agent.run(given, ann)
    await run.next()
    await new Promise((resolve) => setTimeout(resolve, 5))
    await agent.grants.revoke('ann')
    // what began before is not held back; from now on nothing begins
    const before = send.runs.length
    await all(run)
    expect([words, send.runs.length]).toEqual([words, before])
  }
})

test('F14 no call starts by a session approval once its end was told, whenever before the start that is', async () => {
  const digest = crypto.subtle.digest.bind(crypto.subtle)
  for (let ticks = 0; ticks < 60; ticks++) {
    let begun = () => {}
    const onAudit: ApprovalOptions['onAudit'] = ({ event }) => {
      if (event === 'started') begun()
    }
    const { agent, send, given } = await granted({ turn: call(['c1', 'send', {}]), approvals: { onAudit } })
    const ended: number[] = []
    begun = async () => {
      for (let tick = 0; tick < ticks; tick++) await null
      await agent.grants.revoke('ann')
      ended.push(send.runs.length)
    }
    // as on a machine whose threads are busy
    const slow = vi.spyOn(crypto.subtle, 'digest').mockImplementation(async (...what) => {
      await new Promise((resolve) => setImmediate(resolve))
      return digest(...what)
    })
    await collect(agent, given, ann)
    slow.mockRestore()
    await expect.poll(() => ended).toHaveLength(1)
    expect([ticks, send.runs.length]).toEqual([ticks, ended[0]])
  }
})

test('a call by a session approval whose result was lost is told as one that may have run', async () => {
  const { agent, send, given } = await granted({ turn: call(['c1', 'send', {}]) })
  const events = await collect(agent, given, ann)
  const heard = events.filter(({ type }) => type !== 'TOOL_CALL_RESULT')
  expect(send.runs).toHaveLength(1)
  for (const more of [[], [user('did it work?')]]) {
    const later = await collect(agent, input([...fold(given.messages, heard), ...more]), ann)
    expect(results(later)).toMatchObject([{ id: 'c1', own: { outcome: 'error', code: 'interrupted' } }])
  }
  expect(send.runs).toHaveLength(1)
})

test('a ledger that throws as it renews a lease is warned of, and the call runs on', async () => {
  let warned = () => {}
  const isWarned = new Promise<void>((resolve) => {
    warned = resolve
  })
  let begun = false
  const execute = async () => {
    begun = true
    await isWarned
    return 'sent'
  }
  const inner = memoryLedger()
  const renew: Ledger['renew'] = (...given) => {
    if (begun) throw new Error('database is closed')
    return inner.renew(...given)
  }
  const send = counted('send', { needsApproval: true, execute })
  const { agent } = testAgent([call(['c1', 'send', {}]), say('ok')], {
    tools: [send.tool],
    approvals: { ledger: { ...inner, renew }, lease: 60 },
    warn: (message) => {
      if (message.includes('lease')) warned()
    },
  })
  const { history, first } = await ask(agent, {}, ann)
  const resume = [answer(first, { approved: true })]
  const events = await collect(agent, input(history, { resume }), ann)
  expect(results(events)).toMatchObject([{ id: 'c1', content: 'sent' }])
})

test('F14 a session approval that ends while the audit trail is slow, or while the ledger is, starts no call', async () => {
  for (const moment of ['audit', 'ledger'] as const) {
    const ledger = memoryLedger()
    let armed = false
    let end = async () => {}
    const slow: Ledger = {
      ...ledger,
      async findGrant(key, purpose) {
        const found = await ledger.findGrant(key, purpose)
        if (armed && moment === 'ledger' && purpose === 'use') await end()
        return found
      },
    }
    const onAudit: ApprovalOptions['onAudit'] = async ({ event }) => {
      if (armed && moment === 'audit' && event === 'started') await end()
    }
    const { agent, send, given } = await granted(
      { turn: call(['c1', 'send', {}]), approvals: { onAudit } },
      slow,
    )
    end = async () => {
      armed = false
      await agent.grants.revoke('ann')
    }
    armed = true
    const events = await collect(agent, given, ann)
    expect([moment, send.runs]).toEqual([moment, []])
    expect(requests(events)).toMatchObject([{ toolCallId: 'c1' }])
  }
})

test('F14 a policy that blocks, or asks, by the time a call has its turn is obeyed', async () => {
  for (const later of ['block', 'ask'] as const) {
    const busy = gate()
    let mood: 'allow' | 'ask' | 'block' = 'allow'
    const slow = counted('slow', { execute: () => busy.passed.then(() => 'ok') })
    const send = counted('send')
    const { agent } = testAgent([call(['c1', 'slow', {}], ['c2', 'send', {}]), say('ok')], {
      tools: [slow.tool, send.tool],
      concurrency: 1,
      approvals: { policy: () => mood },
    })
    const running = collect(agent, input([user('go')]), ann)
    await expect.poll(() => slow.runs.length).toBe(1)
    await new Promise((resolve) => setImmediate(resolve))
    mood = later
    busy.open()
    const events = await running
    expect([later, send.runs]).toEqual([later, []])
    if (later === 'ask') expect(requests(events)).toMatchObject([{ toolCallId: 'c2' }])
    else expect(results(events).at(-1)).toMatchObject({ id: 'c2', own: { outcome: 'denied' } })
  }
})

/** A question that is answered with yes while the audit trail holds up what follows the claim. */
async function heldUp(more: {
  readonly hold: 'claimed' | 'started'
  readonly lease?: number
  readonly policy?: ApprovalOptions['policy']
  readonly expiresIn?: number
  readonly meanwhile: (clock: { now: number }, agent: Agent, given: RunAgentInput) => Promise<void>
  readonly tool?: Parameters<typeof counted>[1]
}) {
  const clock = { now: Date.now() }
  const now = () => clock.now
  const send = counted('send', { needsApproval: true, ...more.tool })
  let given: RunAgentInput | undefined
  let held = false
  const { agent } = testAgent([call(['c1', 'send', {}]), say('ok'), say('ok')], {
    tools: [send.tool],
    now,
    approvals: {
      ledger: memoryLedger({ now }),
      lease: more.lease ?? 30_000,
      policy: more.policy,
      ...(more.expiresIn !== undefined && { expiresIn: more.expiresIn }),
      onAudit: async ({ event }) => {
        if (event !== more.hold || held || given === undefined) return
        held = true
        await more.meanwhile(clock, agent, given)
      },
    },
  })
  const { history, first } = await ask(agent, {}, ann)
  const resume = [answer(first, yes)]
  given = input(history, { resume })
  const events = await collect(agent, given, ann)
  const again = await collect(agent, input(history, { resume }), ann)
  return { send, events, again }
}

test('F15 a call whose lease was lost before its start does not start, and everybody is told the same', async () => {
  for (const hold of ['claimed', 'started'] as const) {
    let other: readonly AGUIEvent[] = []
    const { send, events } = await heldUp({
      hold,
      meanwhile: async (clock, agent, given) => {
        // the process stood still: longer than its lease, and no timer of its own has run
        clock.now += 31_000
        other = await collect(agent, { ...given, runId: 'other' }, ann)
      },
    })
    expect(results(other)).toMatchObject([{ own: { outcome: 'error', code: 'interrupted' } }])
    expect([hold, send.runs]).toEqual([hold, []])
    expect(results(events)).toMatchObject([{ own: { outcome: 'error', code: 'interrupted' } }])
  }
})

test('F15 the lease is renewed from the claim on, so that a slow audit trail loses nothing', async () => {
  const { send, events } = await heldUp({
    hold: 'claimed',
    lease: 60,
    // the ledger's clock goes on with each renewal that it gets
    meanwhile: async (clock) => {
      for (let step = 0; step < 5; step++) {
        clock.now += 30
        await new Promise((resolve) => setTimeout(resolve, 30))
      }
    },
  })
  expect(send.runs.length).toBe(1)
  expect(results(events)).toMatchObject([{ content: { done: 'send' } }])
})

test('F15 a call that was answered in time does not start after its time', async () => {
  const { send, events, again } = await heldUp({
    hold: 'started',
    expiresIn: 10,
    meanwhile: async (clock) => {
      clock.now += 11_000
    },
  })
  expect(send.runs).toEqual([])
  expect(results(events)).toMatchObject([{ own: { outcome: 'cancelled', code: 'approval-expired' } }])
  expect(results(again)).toEqual(results(events))
})

test('F15 a policy that blocks after the claim keeps the call from its start', async () => {
  let mood: 'ask' | { decision: 'block'; reason: string } = 'ask'
  const { send, events, again } = await heldUp({
    hold: 'started',
    policy: () => mood,
    meanwhile: async () => {
      mood = { decision: 'block', reason: 'Not today.' }
    },
  })
  expect(send.runs).toEqual([])
  expect(results(events)).toMatchObject([{ own: { outcome: 'denied' }, content: { reason: 'Not today.' } }])
  expect(results(again)).toEqual(results(events))
})

test('F15 what a call is bound to is read again right before its start', async () => {
  let file = 'one'
  const { send, events } = await heldUp({
    hold: 'started',
    tool: { bind: () => file },
    meanwhile: async () => {
      file = 'two'
    },
  })
  expect(send.runs).toEqual([])
  expect(results(events)).toMatchObject([{ own: { outcome: 'cancelled', code: 'approval-stale' } }])
})

test('F15 an answer that is refused while another one has the call gets the outcome of that one', async () => {
  for (const wait of [undefined, 20]) {
    const [isReading, wasClaimed, wasRefused, hasEnded] = [gate(), gate(), gate(), gate()]
    let reads = 0
    const send = counted('send', {
      needsApproval: true,
      // The first to answer reads it last, and what was bound has changed by then.
      bind: async () => {
        if (++reads !== 2) return 'one'
        isReading.open()
        await wasClaimed.passed
        return 'two'
      },
    })
    const ledger = memoryLedger()
    const { agent } = testAgent([call(['c1', 'send', {}]), say('ok'), say('ok')], {
      tools: [send.tool],
      approvals: {
        wait,
        ledger: {
          ...ledger,
          claim: async (ref, answered, holder, lease) => {
            const claim = await ledger.claim(ref, answered, holder, lease)
            if (answered.decision === 'cancel') wasRefused.open()
            return claim
          },
        },
        onAudit: async ({ event }) => {
          if (event !== 'started') return
          wasClaimed.open()
          await (wait === undefined ? wasRefused : hasEnded).passed
        },
      },
    })
    const { history, first } = await ask(agent, {}, ann)
    const given = input(history, { resume: [answer(first, yes)] })
    const refused = collect(agent, { ...given, runId: 'refused' }, ann).finally(hasEnded.open)
    await isReading.passed
    const ran = await collect(agent, given, ann)
    expect([wait, send.runs]).toEqual([wait, [{}]])
    // One that may not wait any longer is told nothing that could turn out wrong.
    expect(results(await refused).map(({ content }) => content)).toEqual(
      wait === undefined ? results(ran).map(({ content }) => content) : [],
    )
    if (wait !== undefined) expect(last(await refused)).toMatchObject({ code: 'call-running' })
  }
})

test('F15 an answer that is refused while approval is requested again is told of no outcome', async () => {
  const [isReading, wasClaimed, hasEnded] = [gate(), gate(), gate()]
  let reads = 0
  const send = counted('send', {
    needsApproval: true,
    bind: async () => {
      if (++reads !== 2) return 'one'
      isReading.open()
      await wasClaimed.passed
      return 'two'
    },
    preview: () => ({ kind: 'text', text: `read ${reads} times` }),
  })
  const ledger = memoryLedger()
  const { agent } = testAgent([call(['c1', 'send', {}]), say('ok')], {
    tools: [send.tool],
    approvals: {
      ledger: {
        ...ledger,
        issue: async (record) => {
          if (record.earlier !== undefined) await hasEnded.passed
          return ledger.issue(record)
        },
      },
      onAudit: async ({ event }) => {
        if (event === 'completed') wasClaimed.open()
      },
    },
  })
  const { history, first } = await ask(agent, {}, ann)
  const given = input(history, { resume: [answer(first, yes)] })
  const refused = collect(agent, { ...given, runId: 'refused' }, ann).finally(hasEnded.open)
  await isReading.passed
  const asked = await collect(agent, given, ann)
  expect(requests(asked)).toMatchObject([{ toolCallId: 'c1' }])
  expect([results(await refused), results(asked), send.runs]).toEqual([[], [], []])
  expect(last(await refused)).toMatchObject({ code: 'call-running' })
})

test('F16 the same run posted twice runs its tools once; the second gets 409 run-open', async () => {
  const busy = gate()
  const slow = counted('slow', { execute: () => busy.passed.then(() => 'ok') })
  const { agent } = testAgent([call(['c1', 'slow', {}]), say('ok'), call(['c1', 'slow', {}]), say('ok')], {
    tools: [slow.tool],
  })
  const given = input([user('go')])
  const first = await handleChat(agent, post(given), ann)
  const reading = all(eventsOf(first))
  await expect.poll(() => slow.runs.length).toBe(1)
  const second = await handleChat(agent, post(given), ann)
  busy.open()
  const told = second.status === 200 ? await all(eventsOf(second)) : await second.json()
  await reading
  expect(slow.runs.length).toBe(1)
  expect(second.status).toBe(409)
  expect(told).toMatchObject({ error: { code: 'run-open' } })
  expect(last(await reading)).toMatchObject({ type: 'RUN_FINISHED' })
  // another person, and the same one once the run has ended, are free to use the id
  const other = await handleChat(agent, post(given), { context: { subject: 'bob' } })
  expect(other.status).toBe(200)
})

test('F16 two runs of one id that start at once run their tools once', async () => {
  const slow = counted('slow')
  const { agent } = testAgent(
    ({ messages }) => (messages.at(-1)?.role === 'user' ? call(['c1', 'slow', {}]) : say('ok')),
    { tools: [slow.tool] },
  )
  const given = input([user('go')])
  const runs = [agent.run(given, ann), agent.run(given, ann)]
  const read = await Promise.all(runs.map((run) => all(run)))
  expect(slow.runs.length).toBe(1)
  expect(read.map((events) => last(events)).map(({ type }) => type)).toEqual(['RUN_FINISHED', 'RUN_ERROR'])
  expect(last(read[1] ?? [])).toMatchObject({ code: 'run-open' })
})

test('F60 an answer that carried nothing out starts no turn of the model', async () => {
  const wipe = counted('wipe', { needsApproval: true })
  let turns = 0
  const { agent, model } = testAgent(
    () => (++turns % 2 === 1 ? call([`c${turns}`, 'wipe', {}]) : say('ok')),
    { tools: [wipe.tool] },
  )
  const { history, first } = await ask(agent, {}, ann)
  const resume = [answer(first, yes)]
  const once = await collect(agent, input(history, { resume }), ann)
  const stored: Message[] = fold(history, once)
  expect(model.requests.length).toBe(2)
  for (const [messages, payload] of [
    [stored, yes],
    [stored, { approved: false }],
  ] as const) {
    const late = await collect(agent, input(messages, { resume: [answer(first, payload)] }), ann)
    expect(model.requests.length).toBe(2)
    expect(requests(late)).toEqual([])
    expect(last(late)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'success' } })
  }
  const generated = await agent.generate(input(stored, { resume }), ann)
  expect(generated).toMatchObject({ outcome: 'success', interrupts: [], finishReason: 'nothing-to-do' })
  expect(wipe.runs.length).toBe(1)
})

test('F60 a repeat from before the result goes on to the model: the reply to the first may have been lost', async () => {
  const wipe = counted('wipe', { needsApproval: true })
  const { agent, model } = testAgent([call(['c1', 'wipe', {}]), say('ok'), say('ok')], { tools: [wipe.tool] })
  const { history, first } = await ask(agent, {}, ann)
  const resume = [answer(first, yes)]
  await agent.generate(input(history, { resume }), ann)
  const again = await agent.generate(input(history, { resume }), ann)
  expect([model.requests.length, wipe.runs.length]).toEqual([3, 1])
  expect(again.text).toBe('ok')
})
