import { ChatClient, fetchServerSentEvents } from '@countersign/client'
import { serverHistory } from '@countersign/client/server-history'
import { createAgent, handleChat, memoryLedger, memoryThreads, scriptedModel } from '@countersign/server'
import { expect, onTestFinished, test, vi } from 'vitest'
import { openPage, startServerWith, stop, words } from './threads-server.js'

// F59: four images of 1 MB ended a conversation for good.

// Two of them are more than the limit of these tests, which stands for the default of 4 MiB.
const image = (n: number) => ({
  text: `Image ${n}`,
  files: [
    {
      type: 'file' as const,
      media: 'image' as const,
      source: { type: 'data' as const, mimeType: 'image/png', value: `${n}`.repeat(1_001_000) },
    },
  ],
})

const modes = {
  'each request brings the whole history': (url: string, fetch: typeof globalThis.fetch) => ({
    connection: fetchServerSentEvents(url, { fetch }),
    threads: undefined,
  }),
  'the server keeps the history': (url: string, fetch: typeof globalThis.fetch) => ({
    connection: serverHistory(fetchServerSentEvents(url, { fetch })),
    threads: memoryThreads(),
  }),
}

for (const [mode, open] of Object.entries(modes))
  test(`F59 T38 a message that is too large is refused with the limit, and the next one is sent without it: ${mode}`, async () => {
    const asked: number[] = []
    const sizes: number[] = []
    const fetch: typeof globalThis.fetch = (url, init) => {
      sizes.push(String(init?.body).length)
      return handleChat(agent, new Request(String(url), init), { context: { subject: 'ann' } })
    }
    const { connection, threads } = open('http://localhost/chat', fetch)
    const agent = createAgent({
      model: scriptedModel(async function* ({ messages }) {
        asked.push(messages.filter(({ role }) => role === 'user').length)
        yield words('Nice.')
        yield stop
      }),
      threads,
      limits: { bodyBytes: 2_000_000 },
      approvals: { secret: 'only for this test, 32 bytes long!', ledger: memoryLedger() },
      warn: () => {},
    })
    const client = new ChatClient({ connection, threadId: 't' })
    onTestFinished(() => client.dispose())
    expect(await client.sendMessage(image(1))).toEqual({ status: 'sent' })
    const refused = await client.sendMessage({ text: 'Both', files: [1, 2].flatMap((n) => image(n).files) })
    expect(refused).toMatchObject({ status: 'failed', error: { code: 'http-status', data: { status: 413 } } })
    expect(client.getSnapshot().error?.message).toMatch(/at most 2000000 bytes .*limits\.bodyBytes/)
    expect(client.getSnapshot().messages).toHaveLength(3)
    // It is refused again, unless the limit was raised.
    await client.retry()
    expect(client.getSnapshot().error?.data.status).toBe(413)
    expect(await client.sendMessage('What do you see?')).toEqual({ status: 'sent' })
    expect(client.getSnapshot().messages.map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'user',
      'assistant',
    ])
    expect(asked).toEqual([1, 2])
    if (threads) expect(sizes.at(-1)).toBeLessThan(1000)
  })

test('F59 T38 the same after a reload, with a conversation that the server keeps', async () => {
  const server = startServerWith({ limits: { bodyBytes: 1_000_000 } })
  const first = openPage(server)
  await first.client.sendMessage('Hello')
  expect(await first.client.sendMessage(image(1))).toMatchObject({ status: 'failed' })
  await vi.waitUntil(() => first.local.texts.size > 0)
  first.leave()
  const second = openPage(server, { local: first.local })
  await vi.waitUntil(() => second.client.getSnapshot().messages.length === 3)
  expect(second.client.getSnapshot().error?.data.status).toBe(413)
  expect(await second.client.sendMessage('Still there?')).toEqual({ status: 'sent' })
  expect(second.client.getSnapshot().messages).toHaveLength(4)
})
