import { resumeAiSdkChat } from '@countersign/ai-sdk/server'
import {
  type AgentOptions,
  createAgent,
  handleChat,
  type Model,
  memoryLedger,
  memoryRunLog,
  memoryThreads,
  rejoinResponse,
  threadResponse,
} from '@countersign/server'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { input, user } from './support.js'

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }))
afterEach(() => void vi.useRealTimers())

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))
async function turns(count: number): Promise<void> {
  for (let done = 0; done < count; done++) await turn()
}

const long = 'x'.repeat(400_000)

/** Says something, and then goes on until it is stopped. */
const saying = (delta: string): Model => ({
  id: 'test/m',
  async *stream(_, { signal }) {
    yield { type: 'text-delta', delta }
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
  },
})

let users = 0
/** A user with a run that is open, in an agent whose users may have one reader besides. */
async function openRun(more: Partial<AgentOptions> = {}) {
  const agent = createAgent({
    ...{ model: saying('Well.'), runLog: memoryRunLog(), limits: { runs: { perOwner: 2 } } },
    ...{ approvals: { ledger: memoryLedger() }, warn: () => {}, onError: () => {} },
    ...more,
  })
  const context = { subject: `unread-${users++}` }
  const headers = { 'content-type': 'application/json' }
  const body = JSON.stringify(input([user(more.threads ? long : 'go')], { threadId: 't', runId: 'r' }))
  const post = new Request('http://localhost/', { method: 'POST', headers, body })
  const first = (await handleChat(agent, post, { context })).body?.getReader()
  await first?.read()
  const get = (path: string) => new Request(`http://localhost/${path}`)
  return { agent, context, first, get }
}
type Setup = Awaited<ReturnType<typeof openRun>>

const ways: Readonly<Record<string, (setup: Setup) => Promise<Response>>> = {
  'a run that is rejoined': ({ agent, context, get }) =>
    rejoinResponse(agent, get('?threadId=t&runId=r'), { context }),
  'a run that is rejoined by a client of the AI SDK': ({ agent, context, get }) =>
    resumeAiSdkChat(agent, get('t/stream?runId=r'), { context }),
  'a stored conversation': ({ agent, context, get }) =>
    threadResponse(agent, get('?threadId=t'), { context }),
}

test.each(Object.entries(ways))(
  'a response that nobody reads counts for its user for a minute, and no longer: %s',
  async (name, request) => {
    const setup = await openRun(name.includes('stored') ? { threads: memoryThreads() } : {})
    const unread = await request(setup)
    const reader = unread.body?.getReader()
    const ask = async () => (await request(setup)).status
    const asked = [unread.status, await ask(), await ask()]
    expect([asked[0], asked.at(-1)]).toEqual([200, 429])
    await vi.advanceTimersByTimeAsync(55_000)
    expect(await ask()).toBe(429)
    await vi.advanceTimersByTimeAsync(70_000)
    expect(await ask()).toBe(200)
    await expect(reader?.read()).rejects.toMatchObject({ code: 'reader-too-slow' })
    await setup.first?.cancel().catch(() => {})
  },
)

test('a reader that takes a part of a long event now and then gets all of it', async () => {
  const setup = await openRun({ model: saying(long) })
  const rest = (
    await rejoinResponse(setup.agent, setup.get('?threadId=t&runId=r'), { context: setup.context })
  ).body?.getReader()
  let taken = 0
  while (taken < long.length) {
    await vi.advanceTimersByTimeAsync(50_000)
    taken += (await rest?.read())?.value?.length ?? Number.NaN
  }
  void rest?.cancel()
  void setup.first?.cancel().catch(() => {})
  await turns(5)
})
