import { setTimeout as sleep } from 'node:timers/promises'
import { ChatClient, fetchServerSentEvents } from '@countersign/client'
import { persistent } from '@countersign/client/persistence'
import type { RunAgentInput } from '@countersign/core'
import { createAgent, handleChat, memoryLedger, memoryRunLog, rejoinResponse } from '@countersign/server'
import { gated, hold, scriptedConnection, text } from '@countersign/testing'
import { expect, onTestFinished, test } from 'vitest'
import { memoryPersistence } from './fake-browser.js'

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

test('an answer goes out although a call was left open by a run that the server cancelled', async () => {
  const resumes: unknown[] = []
  const connection = {
    async *connect({ threadId, runId, resume }: RunAgentInput) {
      resumes.push(resume?.map(({ interruptId }) => interruptId))
      yield { type: 'RUN_STARTED', threadId, runId }
      if (resumes.length === 1) {
        yield { type: 'TOOL_CALL_START', toolCallId: 'c1', toolCallName: 'look' }
        yield { type: 'TOOL_CALL_END', toolCallId: 'c1' }
        yield { type: 'TOOL_CALL_START', toolCallId: 'c2', toolCallName: 'remove' }
        yield { type: 'TOOL_CALL_END', toolCallId: 'c2' }
        const approval = { id: 'a1', needsApproval: true, options: ['deny', 'once'] }
        const value = { toolCallId: 'c2', toolName: 'remove', input: {}, approval }
        yield { type: 'CUSTOM', name: 'approval-requested', value }
      }
      const type = resumes.length === 1 ? 'cancelled' : 'success'
      yield { type: 'RUN_FINISHED', threadId, runId, outcome: { type } }
    },
  }
  const client = new ChatClient({ connection, threadId: 't' })
  onTestFinished(() => client.dispose())
  await client.sendMessage('go')
  expect(client.getSnapshot()).toMatchObject({ status: 'awaiting-approval', error: undefined })
  expect(await client.addToolApprovalResponse({ id: 'a1', approved: true })).toEqual({ status: 'sent' })
  expect(resumes).toEqual([undefined, ['a1']])
})

test('a page closed before the reply to a message that cancelled a request is restored with an error, and retry() gets the reply', async () => {
  const stored = memoryPersistence()
  const connection = scriptedConnection([gated(1), [hold()], [text('Here.')]])
  const first = new ChatClient({
    connection,
    threadId: 't',
    persistence: persistent(stored, { saveEvery: 0 }),
  })
  await first.sendMessage('go')
  void first.sendMessage('something else')
  await connection.held()
  const page = new ChatClient({ connection, threadId: 't', persistence: persistent(stored) })
  onTestFinished(() => [first, page].forEach((client) => void client.dispose()))
  await page.restore()
  expect(page.getSnapshot()).toMatchObject({ status: 'error', error: { code: 'truncated-stream' } })
  await page.retry()
  expect(page.getSnapshot().status).toBe('ready')
  expect(JSON.stringify(page.getSnapshot().messages)).toContain('Here.')
})
