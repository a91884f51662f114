import { ChatClient, type ChatClientOptions } from '@countersign/client'
import { type ServerThreadsOptions, serverThreads } from '@countersign/client/server-threads'
import {
  type AgentOptions,
  createAgent,
  handleChat,
  type ModelEvent,
  memoryLedger,
  memoryRunLog,
  memoryThreads,
  scriptedModel,
  threadResponse,
  tool,
  toolDefinition,
} from '@countersign/server'
import { onTestFinished } from 'vitest'
import { z } from 'zod'
import { type MemoryPersistence, memoryPersistence } from './fake-browser.js'
import { FakeLocks } from './fake-locks.js'

export const words = (text: string): ModelEvent => ({ type: 'text-delta', delta: text })
export const stop: ModelEvent = { type: 'finish', reason: 'stop' }
export const calls = (name: string, input: unknown): ModelEvent[] => [
  { type: 'tool-call', id: 'c1', name, arguments: JSON.stringify(input) },
  { type: 'finish', reason: 'tool_calls' },
]

export const here = toolDefinition({
  name: 'here',
  description: 'Runs in the page.',
  input: z.object({ x: z.number() }),
})

export type Reply = () => AsyncIterable<ModelEvent> | readonly ModelEvent[]

/** A server that keeps the conversations of one user. Each reply of its model is one of `replies`. */
export const startServer = (...replies: Reply[]) => startServerWith({}, ...replies)

export function startServerWith(options: Partial<AgentOptions>, ...replies: Reply[]) {
  const executed: string[] = []
  const clock = { now: Date.now }
  const send = tool({
    name: 'send',
    description: 'Sends.',
    input: z.object({ to: z.string() }),
    needsApproval: true,
    execute: ({ to }) => {
      executed.push(to)
      return 'sent'
    },
  })
  const model = scriptedModel(async function* () {
    const reply = replies.shift()?.() ?? [words('Well.'), stop]
    yield* reply
  })
  const secret = 'a secret of more than thirty-two characters'
  const agent = createAgent({
    model,
    tools: [send, here.client(() => 0)],
    threads: memoryThreads(),
    runLog: memoryRunLog(),
    approvals: { ledger: memoryLedger(), secret, expiresIn: 60_000 },
    now: () => clock.now(),
    warn: () => {},
    ...options,
  })
  const handle = (request: Request) => {
    const options = { context: { subject: 'ada' } }
    return request.method === 'POST'
      ? handleChat(agent, request, { ...options, goOnFor: 60_000 })
      : threadResponse(agent, request, options)
  }
  return { agent, executed, clock, handle }
}

/**
 * One page of a browser. `leave` is what closing or reloading it does: its requests are aborted, nothing arrives any more, and nothing is
 * called or stored.
 */
export function openPage(
  server: Pick<ReturnType<typeof startServer>, 'handle'>,
  options: ServerThreadsOptions = {},
  more: Partial<ChatClientOptions> = {},
) {
  const requests: { method: string; url: string; body?: unknown }[] = []
  const network = { isUp: true, isGone: false }
  /** What leaving the page ends: requests that are under way, and responses that are read. */
  const open = new Set<() => void>()
  const never = new Promise<never>(() => {})
  const fetch: typeof globalThis.fetch = async (input, init) => {
    const left = new AbortController()
    if (network.isGone) return never
    const abort = () => left.abort()
    init?.signal?.addEventListener('abort', abort)
    open.add(abort)
    const request = new Request(input, { ...init, signal: left.signal })
    const body = init?.body ? JSON.parse(String(init.body)) : undefined
    requests.push({ method: request.method, url: request.url, body })
    if (!network.isUp) throw new TypeError('fetch failed')
    const response = await server.handle(request)
    if (network.isGone) {
      await response.body?.cancel()
      return never
    }
    if (!response.body) return response
    const reader = response.body.getReader()
    open.delete(abort)
    const close = () => void reader.cancel()
    open.add(close)
    const stream = new ReadableStream<Uint8Array>({
      async pull(controller) {
        const { value, done } = await reader.read()
        if (network.isGone) return never
        if (!network.isUp) controller.error(new TypeError('network error'))
        else if (done) {
          open.delete(close)
          controller.close()
        } else controller.enqueue(value)
      },
      cancel: () => reader.cancel(),
    })
    return new Response(stream, response)
  }
  const { local = memoryPersistence() } = options
  const whileOpen = async <T>(act: () => Promise<T>): Promise<T> => {
    const result = network.isGone ? never : await act()
    return network.isGone ? never : result
  }
  const errors: string[] = []
  // Pages with the same storage are pages of one browser.
  const locks = new FakeLocks(local || {})
  const all = {
    fetch,
    pollEvery: 10,
    delay: 1,
    attempts: 3,
    ...options,
    local: local && {
      load: (threadId) => whileOpen(() => local.load(threadId)),
      save: (threadId, record) => whileOpen(() => local.save(threadId, record)),
      remove: (threadId) => whileOpen(() => local.remove(threadId)),
      ...(local.update && {
        update: (threadId, change) => whileOpen(async () => local.update?.(threadId, change)),
      }),
    },
  } satisfies ServerThreadsOptions
  const threads = locks.during(() => serverThreads('http://server.test/chat', all))
  const client = new ChatClient({
    ...threads,
    threadId: 't',
    notify: 'sync',
    onError: ({ code }) => errors.push(code),
    ...more,
  })
  const detach = client.attach()
  onTestFinished(() => {
    detach()
    client.dispose()
  })
  const leave = () => {
    network.isGone = true
    for (const end of open) end()
    locks.leave()
    detach()
  }
  return { client, threads, requests, network, errors, leave, local: local as MemoryPersistence }
}
