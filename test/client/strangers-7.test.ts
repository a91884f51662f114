import { setTimeout as sleep } from 'node:timers/promises'
import { ChatClient, fetchServerSentEvents } from '@countersign/client'
import { createAgent, handleChat, memoryLedger, memoryRunLog, rejoinResponse } from '@countersign/server'
import { expect, onTestFinished, test } from 'vitest'

// What a stranger found in the fifteenth session: a run that the server stopped because nobody read it looked complete after a rejoin.

const words = 'one two three four five six seven eight'.split(' ')

/** A chat over a network that breaks once, after the word "three". */
function open(rejoin: boolean, goOnFor: number) {
  let calls = 0
  const model = {
    id: 'test/model',
    async *stream(_: unknown, { signal }: { signal: AbortSignal }) {
      calls++
      for (const word of words) {
        await sleep(2, undefined, { signal })
        yield { type: 'text-delta' as const, delta: `${word} ` }
      }
      yield { type: 'finish' as const, reason: 'stop' as const }
    },
  }
  const approvals = { secret: 'only for this test, 32 bytes long!', ledger: memoryLedger() }
  const agent = createAgent({ model, approvals, runLog: memoryRunLog(), warn: () => {} })
  const methods: string[] = []
  let isFirst = true
  const options = { context: { subject: 'ann' } }
  const fetch: typeof globalThis.fetch = async (url, init) => {
    const network = new AbortController()
    const request = new Request(String(url), { ...init, signal: network.signal })
    methods.push(request.method)
    if (request.method === 'GET') return rejoinResponse(agent, request, options)
    const response = await handleChat(agent, request, { ...options, goOnFor })
    if (!isFirst) return response
    isFirst = false
    const reader = response.body?.getReader()
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        const { value } = (await reader?.read()) ?? {}
        controller.enqueue(value ?? new Uint8Array())
        if (!new TextDecoder().decode(value).includes('three')) return
        await sleep(1)
        network.abort()
        controller.error(new TypeError('The network is gone.'))
      },
    })
    return new Response(body, { headers: response.headers })
  }
  const connection = fetchServerSentEvents('http://localhost/chat', { fetch, rejoin })
  const client = new ChatClient({ connection, threadId: 't' })
  onTestFinished(() => client.dispose())
  const text = () =>
    client
      .getSnapshot()
      .messages.flatMap(({ role, parts }) => (role === 'assistant' ? parts : []))
      .map((part) => (part.type === 'text' ? part.text.trim() : ''))
      .join('|')
  return { client, text, methods, calls: () => calls }
}

test.each([
  [true, 0, ['POST', 'GET', 'POST'], 2],
  [true, 5000, ['POST', 'GET'], 1],
  [false, 0, ['POST', 'POST'], 2],
] as const)(
  'after a cut in mid-text, one retry() leads to the whole text (rejoin: %s, goOnFor: %i)',
  async (rejoin, goOnFor, requests, calls) => {
    const opened = open(rejoin, goOnFor)
    await opened.client.sendMessage('go')
    expect(opened.client.getSnapshot()).toMatchObject({
      status: 'error',
      error: { code: 'connection-failed' },
    })
    await sleep(50)
    await opened.client.retry()
    expect(opened.client.getSnapshot()).toMatchObject({ status: 'ready', error: undefined })
    expect(opened.text()).toBe(words.join(' '))
    expect([opened.methods, opened.calls()]).toEqual([requests, calls])
  },
)

test('a run that the server stopped by itself ends in an error with which retry() repeats it', async () => {
  let isStopped = true
  const connection = {
    async *connect(input: { threadId: string; runId: string }) {
      const { threadId, runId } = input
      yield { type: 'RUN_STARTED', threadId, runId }
      yield { type: 'TEXT_MESSAGE_START', messageId: runId, role: 'assistant' }
      yield { type: 'TEXT_MESSAGE_CONTENT', messageId: runId, delta: isStopped ? 'Half' : 'Whole.' }
      yield { type: 'TEXT_MESSAGE_END', messageId: runId }
      yield { type: 'RUN_FINISHED', threadId, runId, outcome: { type: isStopped ? 'cancelled' : 'success' } }
    },
  }
  const client = new ChatClient({ connection, threadId: 't' })
  onTestFinished(() => client.dispose())
  await client.sendMessage('go')
  expect(client.getSnapshot()).toMatchObject({ status: 'error', error: { code: 'truncated-stream' } })
  isStopped = false
  await client.retry()
  expect(client.getSnapshot()).toMatchObject({ status: 'ready', error: undefined })
  expect(JSON.stringify(client.getSnapshot().messages)).toContain('Whole.')
})
