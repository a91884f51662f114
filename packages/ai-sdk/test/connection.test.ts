import { type AiSdkOptions, aiSdk } from '@countersign/ai-sdk'
import { ChatClient, type ChatClientOptions } from '@countersign/client'
import { expect, test } from 'vitest'

const hello = [
  { type: 'start', messageId: 'm1' },
  { type: 'start-step' },
  { type: 'text-start', id: '0' },
  { type: 'text-delta', id: '0', delta: 'Hello.' },
  { type: 'text-end', id: '0' },
  { type: 'finish-step' },
  { type: 'finish', finishReason: 'stop' },
]

/** A client whose requests end here; each is answered with the next of these lists of chunks, an empty one with 204. */
function chat(
  answers: readonly (readonly object[])[],
  options: AiSdkOptions = {},
  more: Partial<ChatClientOptions> = {},
) {
  const asked: { url: string; method: string; init: RequestInit }[] = []
  const fetch: typeof globalThis.fetch = async (url, init = {}) => {
    const chunks = answers[asked.length] ?? []
    asked.push({ url: String(url), method: init.method ?? 'GET', init })
    if (chunks.length === 0) return new Response(null, { status: 204 })
    const body = chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join('')
    return new Response(`${body}data: [DONE]\n\n`, { headers: { 'content-type': 'text/event-stream' } })
  }
  const connection = aiSdk({ ...options, fetch })
  return { asked, client: new ChatClient({ threadId: 'a/b', ...more, connection }) }
}

test('the route is /api/chat unless another is named, and gets headers and credentials', async () => {
  const { client, asked } = chat(
    [hello, hello],
    { headers: () => ({ 'x-a': '1' }), credentials: 'include' },
    { headers: { 'x-b': '2' } },
  )
  expect(await client.sendMessage('hello')).toEqual({ status: 'sent' })
  expect(asked).toMatchObject([{ url: '/api/chat', method: 'POST', init: { credentials: 'include' } }])
  expect(asked[0]?.init.headers).toEqual({ 'x-a': '1', 'x-b': '2', 'content-type': 'application/json' })
  expect(client.getSnapshot().messages.at(-1)).toMatchObject({
    id: 'm1',
    parts: [{ type: 'text', text: 'Hello.' }],
  })
})

test('a stream that broke off is looked for under the id of the conversation, before the query of the route', async () => {
  const cases = [
    ['/chat', '/chat/a%2Fb/stream'],
    ['/chat/?tenant=a/', '/chat/a%2Fb/stream?tenant=a/'],
    ['https://a.example/chat#x', 'https://a.example/chat/a%2Fb/stream#x'],
  ] as const
  for (const [api, expected] of cases) {
    const { client, asked } = chat([hello.slice(0, 4), hello], { api, resume: 'replay' })
    expect(await client.sendMessage('hello')).toMatchObject({
      status: 'failed',
      error: { code: 'truncated-stream' },
    })
    await client.retry()
    expect(asked.map(({ method, url }) => [method, url])).toEqual([
      ['POST', api],
      ['GET', expected],
    ])
    expect(client.getSnapshot()).toMatchObject({
      status: 'ready',
      messages: [{}, { parts: [{ text: 'Hello.' }] }],
    })
  }
})

test('without `resume` a broken run is asked for again', async () => {
  const { client, asked } = chat([hello.slice(0, 4), hello])
  await client.sendMessage('hello')
  await client.retry()
  expect(asked.map(({ method }) => method)).toEqual(['POST', 'POST'])
})
