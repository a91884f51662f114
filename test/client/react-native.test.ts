import { ChatClient, fetchServerSentEvents } from '@countersign/client'
import { gated, type RunScript, resolve, respond, scriptedConnection, text } from '@countersign/testing'
import { scriptedServer } from '@countersign/testing/server'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { callOf, failOnUnhandledRejections, openClient, saidBy } from './open-chat.js'

failOnUnhandledRejections()

/** What React Native does not have, except for what Node's own `fetch` needs. */
const missing = [
  'crypto',
  'document',
  'window',
  'localStorage',
  'indexedDB',
  'BroadcastChannel',
  'MessageChannel',
  'reportError',
  'requestIdleCallback',
]

beforeEach(() => {
  for (const name of missing) vi.stubGlobal(name, undefined)
})

afterEach(() => {
  vi.unstubAllGlobals()
})

type Platform = (response: Response) => Pick<Response, 'body'> & { readonly text?: () => Promise<string> }

/** `fetch` of React Native: the body is there as a whole only. */
const native: Platform = () => ({ body: null })
/** `fetch` of `expo/fetch`. */
const expo: Platform = ({ body }) => ({ body })

async function open(runs: readonly RunScript[], platform: Platform) {
  const server = await scriptedServer(runs)
  const fetch = async (url: string | URL | Request, init?: RequestInit) => {
    const response = await globalThis.fetch(url, init)
    const { ok, status, statusText, headers } = response
    const text = () => response.text()
    return { ok, status, statusText, headers, url: response.url, text, ...platform(response) } as Response
  }
  const client = new ChatClient({ connection: fetchServerSentEvents(server.url, { fetch }) })
  onTestFinished(async () => {
    client.dispose()
    await server.close()
  })
  return { client, server }
}

describe('React Native', () => {
  test('H27 without `crypto`, with bodies that stream, a chat works, and its ids are different ones', async () => {
    const { client, server } = await open([gated(1), [resolve(), text('Done.')], [text('Again.')]], expo)
    expect(await client.sendMessage('tidy up')).toEqual({ status: 'sent' })
    expect(await client.addToolApprovalResponse({ id: 'a1', approved: true })).toEqual({ status: 'sent' })
    await client.sendMessage('and again')
    expect([callOf(client, 'c1').state, saidBy(client)]).toEqual(['complete', 'Done. Again.'])
    const ids = server.requests.flatMap(({ runId, messages }) => [runId, ...messages.map(({ id }) => id)])
    expect(new Set(server.requests.map(({ runId }) => runId)).size).toBe(3)
    expect(ids.every((id) => id.length > 0)).toBe(true)
    expect(server.requests.map(({ threadId }) => threadId)).toEqual(Array(3).fill(client.threadId))
    expect(client.threadId).toMatch(/^[\da-f]{32}$/)
  })

  test('H27 ids that must be unguessable are the application’s own', async () => {
    let n = 0
    const { client, server } = await open([[text('Hello.')]], expo)
    client.setOptions({ generateId: () => `own-${n++}` })
    await client.sendMessage('hello')
    const [request] = server.requests
    expect(
      [request?.threadId, request?.runId, request?.messages[0]?.id].map((id) => `${id}`.slice(0, 4)),
    ).toEqual(['own-', 'own-', 'own-'])
  })

  test('H27 without bodies that stream, the error says what to add, and the message goes on with it', async () => {
    let platform = native
    const { client } = await open([[text('One.')], [text('Two.')]], (response) => platform(response))
    const result = await client.sendMessage('hello')
    expect(result).toMatchObject({
      status: 'failed',
      error: {
        code: 'empty-response',
        message: expect.stringContaining('in React Native give expo/fetch as the option `fetch`'),
      },
    })
    platform = expo
    await client.retry()
    expect(client.getSnapshot().status).toBe('ready')
    expect(client.getSnapshot().messages.map(({ role }) => role)).toEqual(['user', 'assistant'])
  })

  test('H27 the reason of a refusal is read without a body that streams', async () => {
    const refusal = JSON.stringify({ error: { code: 'nobody', message: 'Sign in first.' } })
    const { client } = await open([[respond(401, refusal)]], native)
    expect(await client.sendMessage('hello')).toMatchObject({
      status: 'failed',
      error: {
        code: 'http-status',
        message: expect.stringContaining('Sign in first.'),
        data: { status: 401 },
      },
    })
  })

  test('H27 without TextDecoder, the error names it', async () => {
    vi.stubGlobal('TextDecoder', undefined)
    const { client } = await open([[text('Hello.')]], expo)
    expect(await client.sendMessage('hello')).toMatchObject({
      status: 'failed',
      error: { message: expect.stringContaining('TextDecoder') },
    })
  })
})

describe('F36 a platform without `crypto`, as React Native', () => {
  test('F36 the constructor does not throw, and messages, runs and the thread get ids that differ', async () => {
    const server = scriptedConnection([[text('hi')], [text('hi')]])
    const [one, two] = [openClient({ connection: server }), openClient({ connection: server })]
    expect([await one.sendMessage('a'), await two.sendMessage('b')]).toEqual([
      { status: 'sent' },
      { status: 'sent' },
    ])
    const ids = server.requests.flatMap(({ threadId, runId, messages }) => [
      threadId,
      runId,
      ...messages.map(({ id }) => id),
    ])
    expect(new Set(ids).size).toBe(6)
    for (const id of ids) expect(id).toMatch(/^[0-9a-f]{32}$/)
  })

  test('F36 a fetch that gives no body is told of with the way out', async () => {
    const fetch = async () => {
      const response = new Response('data: {}\n\n', { headers: { 'content-type': 'text/event-stream' } })
      return Object.defineProperty(response, 'body', { value: undefined })
    }
    const client = openClient({ connection: fetchServerSentEvents('https://chat.invalid/', { fetch }) })
    const result = await client.sendMessage('hello')
    expect(result).toMatchObject({
      status: 'failed',
      error: { code: 'empty-response', message: expect.stringMatching(/expo\/fetch.*option `fetch`/s) },
    })
  })
})
