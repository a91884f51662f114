import { ChatClient, type Connection, fetchServerSentEvents } from '@countersign/client'
import { serverHistory } from '@countersign/client/server-history'
import { versionsOf } from '@countersign/client/server-threads'
import {
  createAgent,
  handleChat,
  loadThread,
  type Model,
  memoryLedger,
  memoryThreads,
  tool,
} from '@countersign/server'
import { describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { calls, openPage, startServer, stop, words } from './threads-server.js'

// The server keeps the conversation, and the network loses the rest of a reply that the server has finished.

const histories: Readonly<Record<string, (connection: Connection) => Connection>> = {
  'its whole history': (connection) => connection,
  'only what is new': serverHistory,
}

/** The model removes two files, one after the other, and says so. */
const model: Model = {
  id: 'test/model',
  async *stream({ messages }) {
    const calls = messages.flatMap(({ content }) => [content].flat()).filter(isCall).length
    if (calls < 2) {
      yield { type: 'text-delta', delta: `File ${calls}. ` }
      yield { type: 'tool-call', id: `c${calls}`, name: 'remove', arguments: `{"path":"${calls}.txt"}` }
    } else yield { type: 'text-delta', delta: 'Both are gone.' }
    yield { type: 'finish', reason: 'stop' }
  },
}

const isCall = (part: unknown) => (part as { readonly type?: string }).type === 'tool-call'

/** Sends a message and approves what is asked; the `n`th reply breaks off behind `after` frames. */
async function converse(history: (connection: Connection) => Connection, n: number, after: number) {
  const ran: string[] = []
  const remove = tool({
    name: 'remove',
    description: 'Removes a file.',
    input: z.object({ path: z.string() }),
    needsApproval: true,
    execute: ({ path }) => ran.push(path),
  })
  const agent = createAgent({
    model,
    tools: [remove],
    threads: memoryThreads(),
    approvals: { secret: 'only for this test, 32 bytes long!', ledger: memoryLedger() },
    warn: () => {},
  })
  let replies = 0
  let isCut = false
  const fetch: typeof globalThis.fetch = async (url, init) => {
    const response = await handleChat(agent, new Request(String(url), init), { context: { subject: 'ann' } })
    if (++replies !== n) return response
    const frames = (await response.text()).split(/(?<=\n\n)/)
    isCut = after < frames.length
    return new Response(frames.slice(0, after).join(''), response)
  }
  const warnings: string[] = []
  const connection = history(fetchServerSentEvents('http://localhost/chat', { fetch }))
  const client = new ChatClient({ connection, threadId: 't', onWarning: (text) => warnings.push(text) })
  await client.sendMessage('Remove both.')
  for (let round = 0; round < 6 && client.getSnapshot().status !== 'ready'; round++) {
    await client.retry()
    for (const { approval } of client.getSnapshot().pendingApprovals)
      await client.addToolApprovalResponse({ id: approval?.id ?? '', approved: true })
  }
  const thread = await loadThread(agent, { subject: 'ann', threadId: 't' })
  return { isCut, ran, warnings, page: client.getSnapshot(), stored: thread?.messages }
}

const told = (messages: readonly { readonly parts: readonly object[] }[] = []) =>
  messages.flatMap(({ parts }) =>
    parts.map((part) => {
      const { text, name, state } = part as Readonly<Record<string, unknown>>
      return text ?? [name, state]
    }),
  )

test.each(Object.entries(histories))(
  'T6, T7: a page that sends %s gets what a lost reply contained by retry(), wherever it was cut',
  async (_, history) => {
    const whole = await converse(history, 0, 0)
    expect(whole.ran).toEqual(['0.txt', '1.txt'])
    let cuts = 0
    for (const n of [1, 2, 3]) {
      for (let after = 0; ; after++) {
        const { isCut, ran, warnings, page, stored } = await converse(history, n, after)
        if (!isCut) break
        cuts++
        const at = `reply ${n}, cut behind frame ${after}`
        expect(page, at).toMatchObject({ status: 'ready', error: undefined })
        expect(ran, at).toEqual(['0.txt', '1.txt'])
        expect(warnings, at).toEqual([])
        expect(told(page.messages), at).toEqual(told(stored))
      }
    }
    expect(cuts).toBeGreaterThan(20)
  },
)

test('a message that is sent again after another page has gone on is not replied to twice: its page is shown what there is', async () => {
  const server = startServer(
    () => [words('One.'), stop],
    () => [words('Two.'), stop],
    () => [words('Again.'), stop],
  )
  let isLost = false
  const page = openPage(
    {
      async handle(request) {
        const response = await server.handle(request)
        if (request.method !== 'POST' || isLost) return response
        await response.text()
        isLost = true
        page.network.isUp = false
        throw new TypeError('fetch failed')
      },
    },
    { pollEvery: 60_000 },
  )
  expect((await page.client.sendMessage('one')).status).toBe('failed')
  await openPage(server).client.sendMessage('two')
  page.network.isUp = true
  await page.client.retry()
  const { messages, status } = page.client.getSnapshot()
  expect(messages.map(({ parts }) => parts.map((part) => part.type === 'text' && part.text).join())).toEqual([
    'one',
    'One.',
    'two',
    'Two.',
  ])
  expect(status).toBe('ready')
})

test('a request without a message, of a page that lacks what another one has said, is not replied to behind the last reply', async () => {
  const server = startServer(
    () => [words('One.'), stop],
    () => [words('Two.'), stop],
    () => [words('Again.'), stop],
  )
  const page = openPage(server, { pollEvery: 60_000 })
  await page.client.sendMessage('one')
  await openPage(server).client.sendMessage('two')
  await page.client.sendMessage()
  const texts = page.client
    .getSnapshot()
    .messages.flatMap(({ parts }) => parts.flatMap((part) => (part.type === 'text' ? part.text : [])))
  expect(texts).toEqual(['one', 'One.', 'two', 'Two.'])
})

// K18 M1
describe('a late answer in another browser, where the reply is not shown yet', () => {
  const textsIn = ({ client }: ReturnType<typeof openPage>) =>
    client
      .getSnapshot()
      .messages.flatMap(({ parts }) => parts.flatMap((part) => (part.type === 'text' ? part.text : [])))

  test.each([
    ['that agrees', true, 'sent'],
    ['that is refused', false, 'refused'],
  ])(
    '%s asks the model for nothing: its page is shown the reply, which stays',
    async (_, approved, status) => {
      const server = startServer(
        () => calls('send', { to: 'ada' }),
        () => [words('Sent.'), stop],
        () => [words('Again.'), stop],
      )
      const first = openPage(server)
      await first.client.sendMessage('Send it')
      const second = openPage(server, { pollEvery: 60_000 })
      await vi.waitUntil(() => second.client.getSnapshot().pendingApprovals.length === 1)
      const [card] = second.client.getSnapshot().pendingApprovals
      const id = card?.approval.id ?? ''
      await first.client.addToolApprovalResponse({ id, approved: true })
      expect(await second.client.addToolApprovalResponse({ id, approved })).toMatchObject({ status })
      expect(textsIn(second)).toEqual(['Send it', 'Sent.'])
      expect(second.client.getSnapshot()).toMatchObject({
        status: 'ready',
        lastRun: { reason: 'nothing-to-do' },
      })
      const looks = first.requests.length
      await vi.waitUntil(() => first.requests.length > looks + 2)
      expect(textsIn(first)).toEqual(['Send it', 'Sent.'])
      expect(first.client.getSnapshot().messages.flatMap(versionsOf)).toEqual([])
      expect(server.executed).toEqual(['ada'])
    },
  )

  test('and a reply that was cut off is asked for anew', async () => {
    const server = startServer(
      () => calls('send', { to: 'ada' }),
      async function* () {
        yield words('Half of')
        throw new Error('down')
      },
      () => [words('Again.'), stop],
    )
    const first = openPage(server)
    await first.client.sendMessage('Send it')
    const second = openPage(server, { pollEvery: 60_000 })
    await vi.waitUntil(() => second.client.getSnapshot().pendingApprovals.length === 1)
    const [card] = second.client.getSnapshot().pendingApprovals
    const answer = { id: card?.approval.id ?? '', approved: true }
    await first.client.addToolApprovalResponse(answer)
    await second.client.addToolApprovalResponse(answer)
    expect(textsIn(second)).toEqual(['Send it', 'Again.'])
    expect(server.executed).toEqual(['ada'])
  })
})
