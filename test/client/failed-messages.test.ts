import { expect, test, vi } from 'vitest'
import { openPage, startServer, startServerWith, stop, words } from './threads-server.js'
import { call, calls, finish, gate, sign } from './tools-in-pages.js'

// serverThreads: a message that could not be sent waits for `retry()` or the next message, whatever happens around it.

type Page = ReturnType<typeof openPage>

const shownOn = ({ client }: Page) =>
  client
    .getSnapshot()
    .messages.map(({ parts }) => parts.flatMap((part) => (part.type === 'text' ? part.text : [])).join(''))

const idOf = ({ client }: Page, at: number) => client.getSnapshot().messages[at]?.id ?? ''

const posts = ({ requests }: Page) => requests.filter(({ method }) => method === 'POST')

/** Sends while the network is down, a moment after everything before was loaded. */
async function fail(page: Page, text: string) {
  page.network.isUp = false
  expect((await page.client.sendMessage(text)).status).toBe('failed')
  page.network.isUp = true
}

for (const local of ['kept in a storage', 'kept in memory'] as const)
  test(`m1 a message whose send failed is not sent because another page has a run, and comes after its reply (${local})`, async () => {
    let end = () => {}
    const ended = new Promise<void>((resolve) => {
      end = resolve
    })
    const server = startServer(
      () => [words('One.'), stop],
      async function* () {
        yield words('Two')
        await ended
        yield words(' and three.')
        yield stop
      },
    )
    const page = openPage(server, local === 'kept in memory' ? { local: false } : {})
    const other = openPage(server)
    await page.client.sendMessage('one')
    await fail(page, 'unsent')
    const before = posts(page).length
    await vi.waitUntil(() => shownOn(other).length === 2)
    const sending = other.client.sendMessage('from another page')
    await vi.waitUntil(() => shownOn(page).includes('from another page'))
    end()
    await sending
    const all = ['one', 'One.', 'from another page', 'Two and three.', 'unsent']
    await vi.waitUntil(() => shownOn(page).length === all.length && shownOn(page)[3] === all[3])
    expect(shownOn(page)).toEqual(all)
    expect(page.client.getSnapshot()).toMatchObject({
      status: 'error',
      error: { code: 'connection-failed' },
    })
    expect(posts(page)).toHaveLength(before)
    await page.client.retry()
    expect(shownOn(page)).toEqual([...all, 'Well.'])
    expect(posts(page)).toHaveLength(before + 1)
    await vi.waitUntil(() => shownOn(other).length === all.length + 1)
  })

/** What replaces an earlier message, and what is shown of the conversation then. */
const REPLACED = {
  'an edit': {
    act: (page: Page) => page.client.sendMessage({ text: 'one, edited', messageId: idOf(page, 0) }),
    rest: ['one, edited', 'Again.'],
  },
  'a regeneration': {
    act: (page: Page) => page.client.regenerate({ messageId: idOf(page, 1) }),
    rest: ['one', 'Again.'],
  },
} as const

for (const [what, { act, rest }] of Object.entries(REPLACED))
  for (const local of ['kept in a storage', 'kept in memory'] as const)
    test(`m2 a message whose send failed is still there after ${what} of an earlier message, and retry sends it (${local})`, async () => {
      const server = startServer(
        () => [words('One.'), stop],
        () => [words('Two.'), stop],
        () => [words('Again.'), stop],
        () => [words('There.'), stop],
      )
      const page = openPage(server, local === 'kept in memory' ? { local: false } : {})
      await page.client.sendMessage('one')
      await page.client.sendMessage('two')
      await fail(page, 'unsent')
      await act(page)
      await vi.waitUntil(() => shownOn(page).length === 3)
      expect(shownOn(page)).toEqual([...rest, 'unsent'])
      expect(page.client.getSnapshot()).toMatchObject({
        status: 'error',
        error: { code: 'connection-failed' },
      })
      await page.client.retry()
      expect(shownOn(page)).toEqual([...rest, 'unsent', 'There.'])
      const next = openPage(server)
      await vi.waitUntil(() => shownOn(next).length === 4)
    })

test('m2 a message that the server has is not kept as unsent when an earlier one is edited, although its reply failed', async () => {
  const server = startServer(
    () => [words('One.'), stop],
    () => {
      throw new Error('The model is down.')
    },
    () => [words('Again.'), stop],
  )
  const page = openPage(server)
  await page.client.sendMessage('one')
  expect((await page.client.sendMessage('two')).status).toBe('failed')
  await page.client.sendMessage({ text: 'one, edited', messageId: idOf(page, 0) })
  await vi.waitUntil(() => page.requests.filter(({ method }) => method === 'GET').length > 3)
  expect(shownOn(page)).toEqual(['one, edited', 'Again.'])
})

for (const conversation of ['new', 'known to the server'] as const)
  test(`a page that is reloaded without a network shows its unsent message, with its error, once it can load (${conversation} conversation)`, async () => {
    const server = startServer()
    const page = openPage(server)
    if (conversation !== 'new') await page.client.sendMessage('before')
    const before = shownOn(page)
    page.network.isUp = false
    await page.client.sendMessage('unsent')
    const kept = conversation === 'new' ? 'unsent' : 'connection-failed'
    await vi.waitUntil(() => String([...page.local.texts.values()]).includes(kept))
    page.leave()
    const reloaded = openPage(server, { local: page.local })
    reloaded.network.isUp = false
    await vi.waitUntil(() => reloaded.errors.length > 0)
    reloaded.network.isUp = true
    await vi.waitUntil(() => shownOn(reloaded).length > before.length)
    expect(shownOn(reloaded).slice(0, before.length + 1)).toEqual([...before, 'unsent'])
    if (conversation !== 'new') {
      expect(reloaded.client.getSnapshot().error?.code).toBe('connection-failed')
      await reloaded.client.retry()
    }
    // In a new conversation it was not tried: it had waited for the conversation to load.
    await vi.waitUntil(() => shownOn(reloaded).length === before.length + 2)
    expect(shownOn(reloaded)).toEqual([...before, 'unsent', 'Well.'])
  })

test('an approval that is given behind a message that could not be sent hands the call to the page; the message is answered after all results', async () => {
  const server = startServerWith({ tools: [sign.client(() => 0)] }, () => [
    calls('sign', 'ada'),
    calls('sign', 'bob'),
    finish,
  ])
  const before = openPage(server)
  await before.client.sendMessage('one')
  await fail(before, 'unsent')
  await vi.waitUntil(() => String([...before.local.texts.values()]).includes('unsent'))
  before.leave()

  const ran: string[] = []
  const bob = gate()
  const tool = sign.client(async ({ to }) => {
    ran.push(to)
    if (to === 'bob') await bob.opened
    return to
  })
  const page = openPage(server, { local: before.local }, { tools: [tool] })
  await vi.waitUntil(() => page.client.getSnapshot().pendingApprovals.length === 2)
  expect(shownOn(page)).toEqual(['one', '', 'unsent'])
  const ids = page.client.getSnapshot().pendingApprovals.map(({ approval }) => approval.id)
  const answers = ids.map((id) => ({ id, approved: true }))
  expect(await page.client.addToolApprovalResponses(answers)).toEqual([
    { status: 'sent' },
    { status: 'sent' },
  ])
  await vi.waitUntil(() => call(page, 'ada')?.state === 'complete')
  const sent = posts(page).length
  bob.open()
  await vi.waitUntil(() => shownOn(page).length === 4)
  expect([ran, sent, posts(page).length]).toEqual([['ada', 'bob'], 1, 2])
  expect([call(page, 'ada'), call(page, 'bob')]).toMatchObject([{ output: 'ada' }, { output: 'bob' }])
  expect(shownOn(page)).toEqual(['one', '', 'unsent', 'Well.'])
})
