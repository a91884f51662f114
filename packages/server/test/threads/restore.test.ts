import type { Message, UIMessage } from '@countersign/core'
import {
  createAgent,
  handleChat,
  loadThread,
  type Model,
  type ModelEvent,
  memoryLedger,
  memoryRunLog,
  memoryThreads,
  type ThreadChange,
  type ThreadStore,
  tool,
} from '@countersign/server'
import * as fc from 'fast-check'
import { afterEach, expect, test, vi } from 'vitest'
import { z } from 'zod'

// A process that is killed: what the run log has of its reply, and the thread does not, is restored by the next run.

const secret = 'only for this test, 32 bytes long!'
const context = { subject: 'rita' }
const key = { owner: 'rita', threadId: 't' }

type Say = (call: number) => Iterable<ModelEvent> | AsyncIterable<ModelEvent>

/** Stores that survive their processes, and the time. */
function machines() {
  let ahead = 0
  const expire = () => {
    ahead += 60_000
  }
  const threads = memoryThreads({ now: () => Date.now() + ahead })
  const ledger = memoryLedger()
  const runLog = memoryRunLog()
  const ran: string[] = []
  const warnings: string[] = []
  const look = tool({
    name: 'look',
    description: 'Looks something up.',
    input: z.object({ at: z.string() }),
    execute: ({ at }) => {
      ran.push(at)
      return `seen ${at}`
    },
  })
  const send = tool({
    name: 'send',
    description: 'Sends something.',
    input: z.object({}),
    needsApproval: true,
    execute: () => {
      ran.push('send')
      return 'sent'
    },
  })
  /** `loses`: whether a change is lost after it was acknowledged, as when a database fails over. */
  function start(say: Say, loses: (change: ThreadChange) => boolean = () => false) {
    let isDead = false
    const never = new Promise<never>(() => {})
    const alive =
      <A extends unknown[], R>(work: (...args: A) => Promise<R>) =>
      (...args: A) =>
        isDead ? never : work(...args)
    const seen: string[] = []
    let calls = 0
    const model: Model = {
      id: 'test/model',
      async *stream({ messages }) {
        seen.push(JSON.stringify(messages))
        yield* say(++calls)
        yield { type: 'finish', reason: 'stop' }
      },
    }
    const store: ThreadStore = {
      ...threads,
      id: 'of a process',
      append: alive(async (where, change) =>
        loses(change) ? { status: 'appended', version: change.version + 1 } : threads.append(where, change),
      ),
      hold: alive(threads.hold),
      release: alive(threads.release),
    }
    const agent = createAgent({
      model,
      tools: [look, send],
      threads: store,
      runLog,
      approvals: { secret, ledger },
      warn: (message) => warnings.push(message),
    })
    const post = (body: object) => {
      const defaults = { threadId: 't', messages: [], tools: [], context: [], protocolVersion: '1.0' }
      const request = new Request('http://x/', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ ...defaults, ...body }),
      })
      return handleChat(agent, request, { context })
    }
    /** Posts, and kills the process once `text` was sent. */
    async function dieAfter(text: string, body: object) {
      const reader = (await post(body)).body?.getReader()
      for (let sent = ''; !sent.includes(text); ) {
        const { done, value } = (await reader?.read()) ?? {}
        if (done) throw new Error(`The run ended before it sent ${text}: ${sent}`)
        sent += new TextDecoder().decode(value)
      }
      isDead = true
      expire()
    }
    return { agent, post, dieAfter, seen }
  }
  const load = async () => (await loadThread({ threads }, { subject: 'rita', threadId: 't' }))?.messages ?? []
  const shown = async () =>
    (await load()).map(({ id, role, parts }) => ({
      id: role === 'user' ? id : role,
      parts: parts.map((part) =>
        part.type === 'text' ? part.text : part.type === 'tool-call' ? `${part.id} ${part.state}` : part.type,
      ),
    }))
  return { start, threads, load, shown, ran, warnings, runLog, expire }
}

/** Whether a page that loads it last says that the reply was cut off. */
const isUnfinished = (last: UIMessage | undefined) =>
  last?.role === 'user' || JSON.stringify(last?.metadata ?? {}).includes('"cut":true')
const user = (id: string, content = id): Message => ({ id, role: 'user', content })
const delta = (text: string): ModelEvent => ({ type: 'text-delta', delta: text })
const never = new Promise<never>(() => {})

async function* cutOff(...events: ModelEvent[]) {
  yield* events
  await never
}

test('recover() keeps the text that was sent but not saved when the process was killed, and marks it as cut off', async () => {
  const { start, load, shown } = machines()
  await start(() => cutOff(delta('Half an '), delta('answer'))).dieAfter('answer', {
    runId: 'r1',
    messages: [user('u1')],
  })
  expect(await shown()).toEqual([{ id: 'u1', parts: ['u1'] }])
  const { agent, seen } = start(() => [])
  expect([await agent.recover(), await agent.recover()]).toEqual([1, 0])
  expect(await shown()).toEqual([
    { id: 'u1', parts: ['u1'] },
    { id: 'assistant', parts: ['Half an answer'] },
  ])
  expect((await load()).at(-1)?.metadata).toEqual({ countersign: { cut: true } })
  expect(seen).toEqual([])
})

test('the next request continues with what the run log has, and its page gets it; what was saved is not doubled', async () => {
  const { start, threads, shown } = machines()
  const saved = async () => (await threads.load(key))?.messages.length === 2
  const first = start(async function* () {
    yield delta('One ')
    await vi.waitUntil(saved)
    yield delta('two')
    await never
  })
  await first.dieAfter('two', { runId: 'r1', messages: [user('u1')] })
  expect((await shown())[1]?.parts).toEqual(['One '])
  const { post, seen } = start(() => [delta('three')])
  const events = await (await post({ runId: 'r2', messages: [user('u2')] })).text()
  expect(events).toMatch(/MESSAGES_SNAPSHOT.*One two/)
  expect(seen[0]?.match(/One two/g)).toHaveLength(1)
  expect((await shown()).map(({ parts }) => parts)).toEqual([['u1'], ['One two'], ['u2'], ['three']])
})

test('a complete call and its result are restored, the call does not run again, and a call that was not complete is left out', async () => {
  const { start, shown, ran } = machines()
  const call = (id: string): ModelEvent => ({
    type: 'tool-call',
    id,
    name: 'look',
    arguments: `{"at":"${id}"}`,
  })
  const open: ModelEvent[] = [
    { type: 'tool-call-start', id: 'c2', name: 'look' },
    { type: 'tool-call-delta', id: 'c2', delta: '{"at":"half' },
  ]
  const first = start(
    (n) => (n === 1 ? [delta('Looking. '), call('c1')] : cutOff(delta('Seen.'), ...open)),
    // The database has lost all that was saved after the question.
    ({ head }) => head !== 'u1',
  )
  await first.dieAfter('half', { runId: 'r1', messages: [user('u1')] })
  expect(await shown()).toHaveLength(1)
  const { agent, post, seen } = start(() => [delta('Well.')])
  expect(await agent.recover()).toBe(1)
  await (await post({ runId: 'r2', messages: [user('u2')] })).text()
  expect((await shown()).map(({ parts }) => parts)).toEqual([
    ['u1'],
    ['Looking. ', 'c1 complete', 'tool-result'],
    ['Seen.'],
    ['u2'],
    ['Well.'],
  ])
  expect(seen[0]?.match(/seen c1/g)).toHaveLength(1)
  expect(ran).toEqual(['c1'])
})

test('a reply that was generated anew is restored as a version of its own', async () => {
  const { start, load, shown } = machines()
  await (await start(() => [delta('First')]).post({ runId: 'r1', messages: [user('u1')] })).text()
  // It asks for the reply anew, because its page lacks it.
  const again = { runId: 'r2', messages: [user('u1')] }
  await start(() => cutOff(delta('Second'))).dieAfter('Second', again)
  expect((await shown()).map(({ parts }) => parts)).toEqual([['u1'], ['First']])
  expect(await start(() => []).agent.recover()).toBe(1)
  expect((await shown()).map(({ parts }) => parts)).toEqual([['u1'], ['Second']])
  expect((await load()).at(-1)?.metadata?.countersign).toMatchObject({ cut: true, versions: { length: 2 } })
})

test('a new version whose process dies before its first word leaves the reply in place that it was to replace, once recover() has ended it', async () => {
  const { start, shown } = machines()
  const first = start(() => [delta('First')])
  await (await first.post({ runId: 'r1', messages: [user('u1')] })).text()
  await (await first.post({ runId: 'r2', messages: [user('u2')] })).text()
  const again = { runId: 'r3', forwardedProps: { countersign: { regenerate: 'u1' } } }
  await start(() => cutOff()).dieAfter('RUN_STARTED', again)
  expect((await shown()).map(({ parts }) => parts)).toEqual([['u1']])
  expect(await start(() => []).agent.recover()).toBe(1)
  expect((await shown()).map(({ parts }) => parts)).toEqual([['u1'], ['First'], ['u2'], ['First']])
})

test('processes that die one after the other: each keeps what the one before had sent', async () => {
  const { start, shown, threads } = machines()
  await start(() => cutOff(delta('One'))).dieAfter('One', { runId: 'r1', messages: [user('u1')] })
  await start(() => cutOff(delta('Two'))).dieAfter('Two', { runId: 'r2', messages: [user('u2')] })
  await start(() => cutOff(delta('Three'))).dieAfter('Three', { runId: 'r3', messages: [user('u3')] })
  const { agent } = start(() => [])
  expect(await agent.recover()).toBe(1)
  expect(await agent.recover()).toBe(0)
  const parts = (await shown()).map((message) => message.parts)
  expect(parts).toEqual([['u1'], ['One'], ['u2'], ['Two'], ['u3'], ['Three']])
  expect((await threads.load(key))?.run).toBeUndefined()
})

test('a run that began a second time under its id, and was killed before it logged anything, doubles nothing', async () => {
  const { start, shown, expire } = machines()
  await start(() => cutOff(delta('Half'))).dieAfter('Half', { runId: 'r1', messages: [user('u1')] })
  const again = { threadId: 't', runId: 'r1', messages: [user('u2')] }
  await start(() => []).agent.openThread(again, context)
  expire()
  expect(await start(() => []).agent.recover()).toBe(1)
  expect((await shown()).map(({ parts }) => parts)).toEqual([['u1'], ['Half'], ['u2']])
})

test('showing another version keeps what the interrupted run had sent', async () => {
  const { start, load } = machines()
  const { post } = start((n) => [delta(`Reply ${n}`)])
  await (await post({ runId: 'r1', messages: [user('u1')] })).text()
  const first = (await load()).at(-1)?.id ?? ''
  const anew = { messages: [user('u1')], forwardedProps: { countersign: { regenerate: 'u1' } } }
  await start(() => cutOff(delta('Half'))).dieAfter('Half', { runId: 'r2', ...anew })
  const { agent } = start(() => [])
  await agent.showVersion({ threadId: 't', messageId: first }, context)
  const [, shown] = await load()
  const { versions }: { versions?: readonly string[] } = shown?.metadata?.countersign ?? {}
  expect([shown?.id, versions?.length]).toEqual([first, 2])
  await agent.showVersion({ threadId: 't', messageId: versions?.[1] ?? '' }, context)
  expect((await load())[1]?.parts).toMatchObject([{ text: 'Half' }])
})

test('a log that cannot be read stops nothing: the thread keeps what it has', async () => {
  const { start, shown, runLog, warnings } = machines()
  await start(() => cutOff(delta('Half'))).dieAfter('Half', { runId: 'r1', messages: [user('u1')] })
  vi.spyOn(runLog, 'read').mockImplementation(async () =>
    (async function* () {
      yield [{ n: 1, data: 'no JSON' }]
    })(),
  )
  expect(await start(() => []).agent.recover()).toBe(1)
  expect((await shown()).map(({ parts }) => parts)).toEqual([['u1']])
  expect(warnings).toContain('What an interrupted run had sent last could not be restored.')
})

afterEach(() => vi.useRealTimers())

const step = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom('word ', 'and ', 'ä😀 ').map((text) => ({ text })) },
  { weight: 1, arbitrary: fc.constantFrom('hm ', 'so ').map((thought) => ({ thought })) },
  { weight: 1, arbitrary: fc.constant('save' as const) },
  { weight: 1, arbitrary: fc.constant('call' as const) },
)

test('whatever the thread and the log have of a run: recovery keeps all of both, once and in order', async () => {
  const counts = { restored: 0, ahead: 0 }
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 1, maxLength: 14 }),
      fc.nat(),
      fc.nat(),
      async (steps, i, j) => {
        vi.useFakeTimers({ toFake: ['setTimeout', 'setInterval'] })
        const { changes, events, name } = await record(steps)
        vi.useRealTimers()
        const stored = changes.slice(0, 1 + (i % changes.length))
        const logged = events.slice(0, j % (events.length + 1))
        const before = await killed(stored, [], name)
        const [fromThread, fromLog, both] = [
          before,
          await killed(stored.slice(0, 1), logged, name),
          await killed(stored, logged, name),
        ]
        const longer = fromThread.length >= fromLog.length ? fromThread : fromLog
        expect(both).toEqual(longer)
        const sent = logged.map((event) => /"TEXT_MESSAGE_CONTENT".*"delta":"([^"]*)"/.exec(event)?.[1] ?? '')
        const texts = fromLog.map((item) => /^text (.*)$/s.exec(item)?.[1] ?? '')
        expect(texts.join('')).toBe(`u1${sent.join('')}`)
        counts[longer === fromLog ? 'restored' : 'ahead']++
      },
    ),
    { seed: 20261125, numRuns: 150 },
  )
  console.info(`The log had more ${counts.restored} times, the thread as much or more ${counts.ahead} times.`)
})

type Step = { text: string } | { thought: string } | 'save' | 'call'

/** One whole run: what it stored, one change after the other, and what it logged. */
async function record(steps: readonly Step[]) {
  const { start, runLog } = machines()
  const changes: ThreadChange[] = []
  const events: string[] = []
  let name = ''
  let at = 0
  const begin = runLog.begin
  vi.spyOn(runLog, 'begin').mockImplementation(async (runKey) => {
    const writer = await begin(runKey)
    name = runKey
    const append = (texts: readonly string[]) => {
      events.push(...texts)
      return writer.append(texts)
    }
    return { ...writer, append }
  })
  const { post } = start(
    async function* () {
      while (at < steps.length) {
        const next = steps[at++]
        if (next === undefined) return
        if (next === 'save') await vi.advanceTimersByTimeAsync(1000)
        else if (next === 'call') {
          yield { type: 'tool-call', id: `c${at}`, name: 'look', arguments: `{"at":"${at}"}` }
          return
        } else if ('text' in next) yield delta(next.text)
        else yield { type: 'reasoning-delta', delta: next.thought }
      }
    },
    (change) => {
      if (!change.release) changes.push(change)
      return false
    },
  )
  await (await post({ runId: 'r1', messages: [user('u1')] })).text()
  return { changes, events, name }
}

/** The conversation after the recovery of a run of which this was stored and logged, one item for each thing that is shown. */
async function killed(changes: readonly ThreadChange[], events: readonly string[], name: string) {
  const { start, threads, runLog, load, expire } = machines()
  const [first] = changes
  if (first?.run === undefined) throw new Error('a run stores its first change under its hold')
  await threads.hold(key, first.run, 1)
  for (const change of changes) expect((await threads.append(key, change)).status).toBe('appended')
  await (await runLog.begin(name)).append(events)
  const { dieAfter: _, agent } = start(() => [])
  expire()
  expect(await agent.recover()).toBe(1)
  return (await load()).flatMap(({ parts }) =>
    parts.flatMap((part) => {
      if (part.type === 'text' || part.type === 'reasoning')
        return [...part.text].map((text) => `${part.type} ${text}`)
      return part.type === 'tool-call'
        ? [`call ${part.id}`]
        : part.type === 'tool-result'
          ? [`result ${part.toolCallId}`]
          : []
    }),
  )
}

/** The answer to the request in the events of a run, as its page sends it. */
function yesTo(events: string) {
  const finished = events.split('\n\n').findLast((event) => event.includes('RUN_FINISHED')) ?? ''
  const { outcome } = JSON.parse(finished.slice(finished.indexOf('{')))
  const { id, metadata } = outcome.interrupts[0]
  return [{ interruptId: id, status: 'resolved', payload: { approved: true }, metadata }]
}

test.each(['recover() has ended the run of', 'nothing has ended the run of'])(
  'an answer that is sent again after %s a process that was killed in its reply gets all of the reply',
  async (what) => {
    const { start, shown, ran } = machines()
    const asks = start(() => [{ type: 'tool-call', id: 'c1', name: 'send', arguments: '{}' }])
    const asked = await (await asks.post({ runId: 'r1', messages: [user('u1')] })).text()
    const resume = yesTo(asked)
    await start(() => cutOff(delta('It is '))).dieAfter('It is', { runId: 'r2', resume })
    const { agent, post } = start(() => [delta('It is sent.')])
    if (what.startsWith('recover')) expect(await agent.recover()).toBe(1)
    await (await post({ runId: 'r3', resume })).text()
    expect((await shown()).flatMap(({ parts }) => parts).join(' ')).toMatch(/It is sent\.$/)
    expect(ran).toEqual(['send'])
  },
)

test('a page that lacks what was said behind its last message gets all of a reply that was cut off', async () => {
  const { start, shown } = machines()
  await (await start(() => [delta('Hello.')]).post({ runId: 'r1', messages: [user('u1')] })).text()
  const second = { runId: 'r2', messages: [user('u2')] }
  await start(() => cutOff(delta('It is '))).dieAfter('It is', second)
  const { agent, post } = start(() => [delta('It is late.')])
  expect(await agent.recover()).toBe(1)
  await (await post({ runId: 'r3', messages: [user('u1')] })).text()
  expect((await shown()).flatMap(({ parts }) => parts).join(' ')).toMatch(/It is late\.$/)
})

test('no page that loads while recover() works sees a reply that was cut off as if it were complete', async () => {
  const { start, threads } = machines()
  await start(() => cutOff(delta('Half an answer'))).dieAfter('answer', {
    runId: 'r1',
    messages: [user('u1')],
  })
  const seen: string[] = []
  const look = async () => {
    const { run, messages = [] } = (await threads.load(key)) ?? {}
    const isMarked = messages.at(-1)?.message.includes('"cut":true')
    seen.push(run ? 'held' : isMarked ? 'cut off' : 'complete')
  }
  const { append, release } = threads
  threads.append = async (...given) => append(...given).finally(look)
  threads.release = async (...given) => release(...given).finally(look)
  expect(await start(() => []).agent.recover()).toBe(1)
  expect(seen).not.toContain('complete')
  expect(seen.at(-1)).toBe('cut off')
})

test.each(['a change in the middle', 'the last change'])(
  'a run whose store fails once, at %s, leaves no reply that looks complete',
  async (what) => {
    const { start, threads, load } = machines()
    const { append } = threads
    const down = vi.fn()
    threads.append = async (where, change) => {
      if (!JSON.stringify(change.messages ?? []).includes('Half')) return append(where, change)
      threads.append = append
      down()
      throw new Error('down')
    }
    const first = start(async function* () {
      yield delta('Half an ')
      if (what === 'a change in the middle') await vi.waitUntil(() => down.mock.calls.length > 0)
      yield delta('answer')
    })
    expect(await (await first.post({ runId: 'r1', messages: [user('u1')] })).text()).toContain('RUN_ERROR')
    const { run } = (await threads.load(key)) ?? {}
    expect(run?.lapsed || isUnfinished((await load()).at(-1))).toBe(true)
    await start(() => []).agent.recover()
    expect(isUnfinished((await load()).at(-1))).toBe(true)
  },
)

test('a reply that was cut off stays so if its page asks anew, and that run fails or dies before it says anything', async () => {
  for (const way of ['fails', 'dies', 'dies and is recovered']) {
    const { start, load, expire } = machines()
    const first = { runId: 'r1', messages: [user('u1')] }
    await start(() => cutOff(delta('Half an answer'))).dieAfter('answer', first)
    const page = { forwardedProps: { countersign: { last: 'u1' } } }
    if (way === 'fails') {
      const failing = start(() => {
        throw new Error('down')
      })
      expect(await (await failing.post({ runId: 'r2', ...page })).text()).toContain('RUN_ERROR')
    } else await start(() => cutOff()).dieAfter('RUN_STARTED', { runId: 'r2', ...page })
    expire()
    if (way === 'dies and is recovered') await start(() => []).agent.recover()
    expect([way, isUnfinished((await load()).at(-1))]).toEqual([way, true])
    await (await start(() => [delta('All of it.')]).post({ runId: 'r3', ...page })).text()
    expect(isUnfinished((await load()).at(-1))).toBe(false)
  }
})

test.each(['and recover() ends that', 'and nothing ends that'])(
  'a complete reply stays complete if a run behind it dies before it says anything, %s: an answer that is sent again gets no other reply',
  async (what) => {
    const { start, threads, load, expire } = machines()
    const asks = start(() => [{ type: 'tool-call', id: 'c1', name: 'send', arguments: '{}' }])
    const resume = yesTo(await (await asks.post({ runId: 'r1', messages: [user('u1')] })).text())
    await (await start(() => [delta('It is sent.')]).post({ runId: 'r2', resume })).text()
    await threads.hold(key, { runId: 'r3', holder: 'dead' }, 1)
    expire()
    const { agent, post, seen } = start(() => [delta('AGAIN')])
    if (what.startsWith('and recover')) expect(await agent.recover()).toBe(1)
    await (await post({ runId: 'r4', resume })).text()
    expect(seen).toEqual([])
    expect(isUnfinished((await load()).at(-1))).toBe(false)
  },
)

test('a complete reply stays complete if a run that was to answer anew dies before it says anything', async () => {
  const { start, load } = machines()
  await (await start(() => [delta('Done.')]).post({ runId: 'r1', messages: [user('u1')] })).text()
  const forwardedProps = { countersign: { last: 'u1' } }
  await start(() => cutOff()).dieAfter('RUN_STARTED', { runId: 'r2', forwardedProps })
  expect(await start(() => []).agent.recover()).toBe(1)
  expect((await load()).at(-1)?.parts).toMatchObject([{ text: 'Done.' }])
  expect(isUnfinished((await load()).at(-1))).toBe(false)
})

test("a reply that was cut off behind a provider's own call is marked", async () => {
  const { start, load } = machines()
  const search = {
    type: 'tool-call',
    id: 'c1',
    name: 'search',
    arguments: '{}',
    providerExecuted: true,
  } as const
  const first = { runId: 'r1', messages: [user('u1')] }
  await start(() => cutOff(delta('I look. '), search)).dieAfter('TOOL_CALL_END', first)
  await start(() => []).agent.recover()
  expect(isUnfinished((await load()).at(-1))).toBe(true)
})

test('a result that the store took, and failed to say so, does not look like the end of a reply', async () => {
  const { start, threads, expire } = machines()
  const here = { name: 'here', description: 'Here', parameters: { type: 'object' } }
  const asks = start(() => [{ type: 'tool-call', id: 'c1', name: 'here', arguments: '{}' }])
  await (await asks.post({ runId: 'r1', messages: [user('u1')], tools: [here] })).text()
  const { append } = threads
  threads.append = async (where, change) => {
    threads.append = append
    await append(where, change)
    throw new Error('down')
  }
  const messages = [{ id: 't1', role: 'tool', toolCallId: 'c1', content: '1' }]
  const { agent, post } = start(() => [])
  expect((await post({ runId: 'r2', messages, tools: [here] })).status).toBe(503)
  expire()
  expect((await threads.load(key))?.run?.lapsed).toBe(true)
  expect(await agent.recover()).toBe(1)
  expect((await threads.load(key))?.messages.at(-1)?.message).toContain('"cut":true')
})

test('a message to which the model has nothing to say is not one that got no reply', async () => {
  const { start, threads } = machines()
  await (await start(() => []).post({ runId: 'r1', messages: [user('u1')] })).text()
  expect((await threads.load(key))?.messages.at(-1)?.message).toContain('"cut":false')
})

test('while a run is open, what is last of its reply is marked; its last change takes the mark off', async () => {
  const { start, threads } = machines()
  const marks = async () =>
    ((await threads.load(key))?.messages ?? []).map((one) => one.message.includes('"cut":true'))
  const during: boolean[][] = []
  const { post } = start(async function* (calls) {
    if (calls > 1) during.push(await marks())
    else yield { type: 'tool-call', id: 'c1', name: 'look', arguments: '{"at":"home"}' }
    yield delta('Seen.')
  })
  await (await post({ runId: 'r1', messages: [user('u1')] })).text()
  expect(during).toEqual([[false, false, true]])
  expect(await marks()).toEqual([false, false, false, false])
})

test('recover() that the store refuses what the run log has is tried again, and nothing of that is lost', async () => {
  const { start, threads, shown, expire, warnings } = machines()
  await start(() => cutOff(delta('Half an answer'))).dieAfter('answer', {
    runId: 'r1',
    messages: [user('u1')],
  })
  const { append } = threads
  threads.append = async () => {
    threads.append = append
    throw new Error('down')
  }
  const { agent } = start(() => [])
  expect(await agent.recover()).toBe(0)
  expect(warnings).toEqual(['The run of the thread "t" could not be recovered.'])
  expire()
  expect(await agent.recover()).toBe(1)
  expect((await shown()).flatMap(({ parts }) => parts)).toEqual(['u1', 'Half an answer'])
})

test('a reply that was cut off is marked also if the run that was to continue it fails before it says anything', async () => {
  const { start, threads, load, shown } = machines()
  const saved = async () => (await threads.load(key))?.messages.length === 2
  const first = start(async function* () {
    yield delta('Half an ')
    await vi.waitUntil(saved)
    yield delta('answer')
    await never
  })
  await first.dieAfter('answer', { runId: 'r1', messages: [user('u1')] })
  const failing = start(() => {
    throw new Error('down')
  })
  const page = { forwardedProps: { countersign: { last: (await load()).at(-1)?.id } } }
  expect(await (await failing.post({ runId: 'r2', ...page })).text()).toContain('RUN_ERROR')
  expect((await shown()).at(-1)?.parts).toEqual(['Half an answer'])
  expect((await load()).at(-1)?.metadata).toEqual({ countersign: { cut: true } })
  await (await start(() => [delta('All of it.')]).post({ runId: 'r3', ...page })).text()
  expect(JSON.stringify((await load()).at(-1))).not.toContain('cut')
})

test.each([{ says: ['Half an ', 'answer'] }, { says: [] }])(
  'a reply that ended with an error is marked as cut off, and the next request continues it: %o',
  async ({ says }) => {
    const { start, load, shown } = machines()
    const failing = start(function* () {
      yield* says.map(delta)
      throw new Error('down')
    })
    const request = { runId: 'r1', messages: [user('u1')] }
    expect(await (await failing.post(request)).text()).toContain('RUN_ERROR')
    expect(isUnfinished((await load()).at(-1))).toBe(true)
    const last = (await load()).at(-1)?.id
    const page = { forwardedProps: { countersign: { last } } }
    await (await start(() => [delta('All of it.')]).post({ runId: 'r2', ...page })).text()
    expect((await shown()).at(-1)?.parts).toEqual(['All of it.'])
    expect(JSON.stringify((await load()).at(-1))).not.toContain('cut')
  },
)

test('a complete reply is not marked because a request that brings nothing fails', async () => {
  const { start, load } = machines()
  await (await start(() => [delta('Done.')]).post({ runId: 'r1', messages: [user('u1')] })).text()
  const failing = start(() => {
    throw new Error('down')
  })
  const page = { forwardedProps: { countersign: { last: (await load()).at(-1)?.id } } }
  expect(await (await failing.post({ runId: 'r2', ...page })).text()).toContain('RUN_ERROR')
  expect((await load()).at(-1)?.metadata).toBeUndefined()
})

test('a reply that a page has not seen stays if the run fails that was to answer anew', async () => {
  const { start, load, shown } = machines()
  await (await start(() => [delta('Done.')]).post({ runId: 'r1', messages: [user('u1')] })).text()
  const failing = start(() => {
    throw new Error('down')
  })
  const page = { forwardedProps: { countersign: { last: 'u1' } } }
  expect(await (await failing.post({ runId: 'r2', ...page })).text()).toContain('RUN_ERROR')
  expect((await shown()).map(({ parts }) => parts)).toEqual([['u1'], ['Done.']])
  expect(JSON.stringify(await load())).not.toContain('cut')
})
