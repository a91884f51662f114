import type { Message } from '@countersign/core'
import {
  createAgent,
  handleChat,
  loadThread,
  type Model,
  type ModelEvent,
  memoryLedger,
  memoryRunLog,
  memoryThreads,
  type ThreadStore,
  threadResponse,
  tool,
} from '@countersign/server'
import * as fc from 'fast-check'
import { afterEach, expect, test, vi } from 'vitest'
import { z } from 'zod'

// However a run ends, and whatever its store fails to do: a reply that is not complete never looks complete, and a complete one never cut off.

const methods = ['append', 'hold', 'release'] as const

const plan = fc.record({
  steps: fc.array(fc.constantFrom('text', 'thought', 'call', 'search', 'save'), {
    maxLength: 8,
  }),
  /** `left`: its page is closed, and the run does not go on without it. `stopped`: by its user. */
  ending: fc.constantFrom('well', 'failing', 'dying', 'left', 'stopped'),
  /** The model says one more word before its ending. One that ends well always does. */
  saysEnd: fc.boolean(),
  /** The call of the store that fails, once, before or after it has done its work. */
  fault: fc.option(fc.record({ method: fc.constantFrom(...methods), at: fc.nat(5), isDone: fc.boolean() }), {
    freq: 2,
  }),
  hasLog: fc.boolean(),
  isRecovered: fc.boolean(),
})

type Plan = typeof plan extends fc.Arbitrary<infer Value> ? Value : never

afterEach(() => vi.useRealTimers())

test('a reply that is not complete never looks complete, and a complete one never cut off', async () => {
  const counts = { whole: 0, cut: 0, faults: 0 }
  await fc.assert(
    fc.asyncProperty(plan, async (given) => {
      vi.useFakeTimers({ toFake: ['setTimeout', 'setInterval'] })
      const { said, stored, failures } = await play(given)
      vi.useRealTimers()
      // A reply that its user stopped is as complete as they want it, unless there is none.
      const hasReply = said !== 'Go' || given.steps.includes('search')
      const isOver = given.ending === 'well' || (given.ending === 'stopped' && hasReply)
      const isWhole = isOver && stored.text === said && (given.ending === 'stopped' || said.endsWith('end'))
      counts[isWhole ? 'whole' : 'cut']++
      counts.faults += failures
      // Without a message, the request was refused as a whole. A run whose store failed may have said all, and not know that it was stored.
      if (stored.text !== undefined && !(isWhole && failures > 0)) expect(stored.isCut).toBe(!isWhole)
      if (failures === 0 && given.ending === 'well') expect(isWhole).toBe(true)
    }),
    { seed: 20261127, numRuns: 300 },
  )
  console.info(JSON.stringify(counts))
  expect(Math.min(...Object.values(counts))).toBeGreaterThan(20)
})

/** Each run has a user of its own: runs that never end count for theirs. */
let runs = 0

/** One run, and what a page shows that loads its conversation afterwards. */
async function play({ steps, ending, saysEnd, fault, hasLog, isRecovered }: Plan) {
  const user = `ann ${++runs}`
  let ahead = 0
  const threads = memoryThreads({ now: () => Date.now() + ahead })
  const never = new Promise<never>(() => {})
  let end = () => {}
  const ended = new Promise<undefined>((resolve) => {
    end = () => resolve(undefined)
  })
  const seen = { isDead: false, failures: 0, said: 'Go' }
  const calls = { append: 0, hold: 0, release: 0 }
  const failing =
    <Args extends unknown[], Result>(
      name: (typeof methods)[number],
      method: (...args: Args) => Promise<Result>,
    ) =>
    async (...args: Args): Promise<Result> => {
      if (seen.isDead) return never
      if (fault?.method !== name || calls[name]++ !== fault.at) return method(...args)
      seen.failures++
      if (fault.isDone) await method(...args)
      throw new Error('down')
    }
  const store: ThreadStore = {
    ...threads,
    append: failing('append', threads.append),
    hold: failing('hold', threads.hold),
    release: failing('release', threads.release),
  }
  const look = tool({ name: 'look', description: 'Looks', input: z.object({}), execute: () => 'seen' })
  let at = 0
  async function* say(): AsyncGenerator<ModelEvent> {
    for (; at < steps.length; ) {
      const id = `${steps[at]}${at}`
      const step = steps[at++]
      if (step === 'save') await vi.advanceTimersByTimeAsync(1000)
      else if (step === 'search') {
        yield { type: 'tool-call', id, name: 'search', arguments: '{}', providerExecuted: true }
        yield { type: 'tool-result', toolCallId: id, outcome: { kind: 'ok', value: 'found' } }
      } else {
        seen.said += id
        if (step === 'text') yield { type: 'text-delta', delta: id }
        else if (step === 'thought') yield { type: 'reasoning-delta', delta: id }
        else {
          yield { type: 'tool-call', id, name: 'look', arguments: '{}' }
          return yield { type: 'finish', reason: 'tool_calls' }
        }
      }
    }
    if (saysEnd || ending === 'well') {
      seen.said += 'end'
      yield { type: 'text-delta', delta: 'end' }
    }
    if (ending === 'failing') throw new Error('The model is down.')
    if (ending !== 'well') {
      seen.isDead = ending === 'dying'
      end()
      await never
    }
    yield { type: 'finish', reason: 'stop' }
  }
  const model: Model = { id: 'test/model', stream: say }
  const runLog = memoryRunLog()
  const make = (threads: ThreadStore) =>
    createAgent({
      ...{ model, tools: [look], threads, warn: () => {}, ...(hasLog && { runLog }) },
      approvals: { secret: 'only for this test, 32 bytes long!', ledger: memoryLedger() },
    })
  const messages: Message[] = [{ id: 'u1', role: 'user', content: 'Go' }]
  const body = { threadId: 't', runId: `r${runs}`, messages, tools: [], context: [], protocolVersion: '1.0' }
  const headers = { 'content-type': 'application/json' }
  const request = new Request('http://x/', { method: 'POST', headers, body: JSON.stringify(body) })
  const context = { subject: user }
  const agent = make({ ...store, id: 'failing' })
  const response = await handleChat(agent, request, { context })
  const reader = response.body?.getReader()
  for (let isOver = false; !isOver; ) isOver = (await Promise.race([reader?.read(), ended]))?.done ?? true
  if (ending === 'stopped') {
    const url = `http://x/?threadId=t&runId=${body.runId}`
    await threadResponse(agent, new Request(url, { method: 'DELETE' }), { context })
  }
  if (ending === 'stopped' || ending === 'left') {
    await reader?.cancel()
    await vi.advanceTimersByTimeAsync(100)
    await agent.drain()
  }
  ahead = 60_000
  if (isRecovered) await make(threads).recover()
  const shown = (await loadThread({ threads }, { subject: user, threadId: 't' }))?.messages ?? []
  const { messages: kept = [], head, run } = (await threads.load({ owner: user, threadId: 't' })) ?? {}
  const parts = shown.flatMap((message) => message.parts)
  const text = parts.map((part) =>
    part.type === 'text' || part.type === 'reasoning'
      ? part.text
      : part.type === 'tool-call' && part.name === 'look'
        ? part.id
        : '',
  )
  const last = kept.find(({ id }) => id === head)
  const isMarked =
    head === 'u1' ? !last?.message.includes('"cut":false') : last?.message.includes('"cut":true')
  return {
    ...seen,
    stored: {
      text: shown.length === 0 ? undefined : text.join(''),
      isCut: run?.lapsed === true || isMarked === true,
    },
  }
}
