// The network breaks once, at each point of a conversation in turn: before a request, before its response, and between any two pieces of it.
import { Readable } from 'node:stream'
import { ChatClient, type ChatClientOptions, fetchServerSentEvents } from '@countersign/client'
import { persistent } from '@countersign/client/persistence'
import { serverThreads } from '@countersign/client/server-threads'
import {
  createAgent,
  handleChat,
  type ModelEvent,
  type ModelMessage,
  memoryLedger,
  memoryRunLog,
  memoryThreads,
  rejoinResponse,
  scriptedModel,
  threadResponse,
  tool,
} from '@countersign/server'
import * as fc from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { full } from '../full.js'
import { memoryPersistence } from './fake-browser.js'
import { FakeLocks } from './fake-locks.js'
import { saidBy } from './open-chat.js'
import { calls, here, stop, words } from './threads-server.js'

type Kind = 'persistence in the browser' | 'threads on the server'

/** What the model says next: three calls, one of each kind, and then a text. */
function reply(messages: readonly ModelMessage[]): ModelEvent[] {
  const results = messages.flatMap(({ role, content }) => (role === 'tool' ? content : []))
  const next = ['note', 'slow', 'here'].find((name) =>
    results.every((result) => 'toolName' in result && result.toolName !== name),
  )
  if (next !== undefined) return [words(`${next}, `), ...calls(next, { x: 1 })]
  return [words(JSON.stringify(messages).includes('second') ? 'more.' : 'done.'), stop]
}

function serve(kind: Kind) {
  const ran: string[] = []
  const input = z.object({ x: z.number() })
  const runs = (name: string, needsApproval: boolean) =>
    tool({ name, description: 'Runs.', input, needsApproval, execute: () => void ran.push(name) })
  const agent = createAgent({
    model: scriptedModel(({ messages }) => reply(messages)),
    tools: [runs('note', false), runs('slow', true), here.client(() => 0)],
    approvals: { ledger: memoryLedger(), secret: 'a secret of more than thirty-two characters' },
    runLog: memoryRunLog(),
    ...(kind === 'threads on the server' && { threads: memoryThreads() }),
    warn: () => {},
  })
  const read = kind === 'threads on the server' ? threadResponse : rejoinResponse
  const context = { subject: 'ada' }
  const handle = (request: Request) =>
    request.method === 'POST'
      ? handleChat(agent, request, { context, goOnFor: 60_000 })
      : read(agent, request, { context })
  return { handle, ran }
}

/** Bytes that arrive together. */
const PIECE = 400

/** Before which piece the network breaks, and how many pieces later it works again. */
type Cut = readonly [at: number, length: number]

/** A network that breaks at each of `cuts`. Only what belongs to runs counts. */
function network(handle: (request: Request) => Promise<Response>, cuts: readonly Cut[]) {
  let count = 0
  const pass = () => {
    const at = count++
    if (cuts.some(([first, length]) => at >= first && at < first + length))
      throw new TypeError('network error')
  }
  async function* pieces(body: ReadableStream<Uint8Array>) {
    for await (const chunk of body)
      for (let at = 0; at < chunk.length; at += PIECE) {
        pass()
        yield chunk.subarray(at, at + PIECE)
      }
    pass()
  }
  const fetch: typeof globalThis.fetch = async (url, init) => {
    const request = new Request(url, init)
    if (request.method === 'GET' && !request.url.includes('runId=')) return handle(request)
    pass()
    const response = await handle(request)
    try {
      pass()
    } catch (error) {
      await response.body?.cancel()
      throw error
    }
    return response.body
      ? new Response(Readable.toWeb(Readable.from(pieces(response.body))) as ReadableStream, response)
      : response
  }
  return { fetch, wasCut: () => cuts.some(([first]) => count > first) }
}

/** `reloads`: before each _Retry_. `isLate`: the second message is said while the page loads again, or at the end. */
interface How {
  readonly reloads: boolean
  readonly isLate?: boolean
}

/** Says two things, approves what is asked and clicks on _Retry_ until both are answered. */
async function converse(kind: Kind, { reloads, isLate = false }: How, ...cuts: Cut[]) {
  const { handle, ran } = serve(kind)
  const { fetch, wasCut } = network(handle, cuts)
  const local = memoryPersistence()
  const options = (fetch: typeof globalThis.fetch): ChatClientOptions =>
    kind === 'threads on the server'
      ? serverThreads('http://server.test/chat', { fetch, local, delay: 1, attempts: 1 })
      : {
          connection: fetchServerSentEvents('http://server.test/chat', { rejoin: true, fetch }),
          persistence: persistent(local, { saveEvery: 1 }),
        }
  const open = () => {
    let isGone = false
    const sent: typeof globalThis.fetch = (...request) => (isGone ? new Promise(() => {}) : fetch(...request))
    const locks = new FakeLocks(local)
    const tools = [here.client(() => ran.push('here'))]
    const client = locks.during(
      () => new ChatClient({ ...options(sent), threadId: 't', tools, notify: 'sync' }),
    )
    const detach = client.attach()
    const leave = () => {
      // A page that is left sends nothing any more: disposing of it would stop its run.
      isGone = true
      detach()
      client.dispose()
      locks.leave()
    }
    onTestFinished(leave)
    return { client, leave }
  }
  let page = open()
  let isSaid = !isLate
  const saySecond = () => {
    if (!isSaid) void page.client.sendMessage('second')
    isSaid = true
  }
  void page.client.sendMessage('first')
  if (!isLate) void page.client.sendMessage('second')
  for (let look = 0; look < 2000; look++) {
    const { client } = page
    const { status, error, pendingApprovals, queue } = client.getSnapshot()
    const [asked] = pendingApprovals
    if (error && reloads) {
      page.leave()
      page = open()
      saySecond()
      await page.client.restore()
      await page.client.retry()
    } else if (error) await client.retry()
    else if (asked && status === 'awaiting-approval' && asked.approval.approved === undefined)
      await client.addToolApprovalResponse({ id: asked.approval.id, approved: true })
    else if (status === 'ready' && queue.length === 0 && saidBy(client).endsWith('done.')) saySecond()
    else if (status === 'ready' && queue.length === 0 && saidBy(client).endsWith('more.')) break
    await new Promise((resolve) => setTimeout(resolve, 1))
  }
  const said = [saidBy(page.client, 'user'), saidBy(page.client).replace('done. ', '')]
  page.leave()
  return { ran, said, wasCut: wasCut() }
}

const kinds: readonly Kind[] = ['persistence in the browser', 'threads on the server']

const whole = { ran: ['note', 'slow', 'here'], said: ['first second', 'note,  slow,  here,  more.'] }

const plans = kinds.flatMap((kind) =>
  [false, true].flatMap((reloads) => [1, 2, 5].map((length) => [kind, reloads, length] as const)),
)

test.each(plans)(
  'F13 wherever the network breaks, each tool runs once and everything said is answered once (%s, with a reload: %s, for %i pieces)',
  async (kind, reloads, length) => {
    let cutAt = 0
    for (; ; cutAt++) {
      const { wasCut, ...found } = await converse(kind, { reloads }, [cutAt, length])
      expect([cutAt, found]).toEqual([cutAt, whole])
      if (!wasCut) break
    }
    expect(cutAt).toBeGreaterThan(20)
  },
)

test.each(kinds)(
  'F13 however often the network breaks, each tool runs once and everything said is answered once (%s)',
  async (kind) => {
    const [seed, numRuns] = [Number(process.env['SEED'] ?? 20_261_128), full ? 400 : 20]
    console.info(`cuts at random: seed ${seed}, ${numRuns} conversations`)
    const cut = fc.tuple(fc.nat(60), fc.integer({ min: 1, max: 4 }))
    const how = fc.record({ reloads: fc.boolean(), isLate: fc.boolean() })
    const cuts = fc.array(cut, { minLength: 2, maxLength: 5 })
    const property = fc.asyncProperty(cuts, how, async (cuts, how) => {
      const { wasCut, ...found } = await converse(kind, how, ...cuts)
      expect(found).toEqual(whole)
    })
    await fc.assert(property, { seed, numRuns })
  },
)
