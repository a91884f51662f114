import { memoryThreads } from '@countersign/server'
import { expect, test, vi } from 'vitest'
import { openPage, startServer, startServerWith } from './threads-server.js'

type Page = Pick<ReturnType<typeof openPage>, 'client'>

const said = ({ client }: Page) =>
  client
    .getSnapshot()
    .messages.flatMap(({ role, parts }) => (role === 'user' ? parts : []))
    .map((part) => 'text' in part && part.text)

const statusOf = ({ client }: Page) => client.getSnapshot().status

/** Two pages of one browser show a message that could not be sent behind the first one. */
async function openBoth() {
  const server = startServer()
  const first = openPage(server)
  await first.client.sendMessage('one')
  first.network.isUp = false
  await first.client.sendMessage('two')
  first.network.isUp = true
  const second = openPage(server, { local: first.local })
  await vi.waitUntil(() => said(second).length === 2)
  return { server, first, second }
}

const lastOf = ({ client }: Page) => client.getSnapshot().messages.at(-1)?.id ?? ''

const firstOf = ({ client }: Page) => client.getSnapshot().messages[0]?.id ?? ''

const changes = {
  'regenerates the first reply': (page: Page) => page.client.regenerate({ messageId: firstOf(page) }),
  'edits the first message': (page: Page) =>
    page.client.sendMessage({ text: 'one', messageId: firstOf(page) }),
}

for (const [what, change] of Object.entries(changes)) {
  test.each([
    ['in that page', ['first']],
    ['in the other page', ['second']],
    ['in both, one after the other', ['first', 'second']],
    ['in both, the other one first', ['second', 'first']],
  ] as const)(`where a page ${what}, what could not be sent is sent once: retry() %s`, async (_, order) => {
    const { server, first, second } = await openBoth()
    await change(first)
    for (const name of order) {
      const page = name === 'first' ? first : second
      await vi.waitUntil(() => statusOf(page) !== 'streaming' && said(page).length === 2)
      await page.client.retry()
    }
    for (const page of [first, second])
      await vi.waitUntil(() => statusOf(page) === 'ready' && said(page).length === 2)
    const elsewhere = openPage(server)
    await vi.waitUntil(() => said(elsewhere).length > 0)
    for (const page of [first, second, elsewhere]) expect(said(page)).toEqual(['one', 'two'])
    await vi.waitUntil(() => first.local.texts.size === 0)
  })
}

for (const where of ['first', 'second'] as const) {
  test.each(['retry()', 'the next message'])(
    `a message that could not be sent, and that two pages show, is sent as the ${where} page has edited it: %s in the other one`,
    async (then) => {
      const { server, first, second } = await openBoth()
      const [page, other] = where === 'first' ? [first, second] : [second, first]
      page.network.isUp = false
      await page.client.sendMessage({ text: 'two, edited', messageId: lastOf(page) })
      page.network.isUp = true
      if (then === 'retry()') await other.client.retry()
      else await other.client.sendMessage('three')
      const expected = ['one', 'two, edited', ...(then === 'retry()' ? [] : ['three'])]
      for (const shown of [page, other]) {
        await vi.waitUntil(() => statusOf(shown) === 'ready' && said(shown).length === expected.length)
        expect(said(shown)).toEqual(expected)
      }
      const elsewhere = openPage(server)
      await vi.waitUntil(() => said(elsewhere).length > 0)
      expect(said(elsewhere)).toEqual(expected)
    },
  )
}

test('a message that one page has left out, because it was too large, does not come back from another page', async () => {
  const server = startServerWith({ threads: memoryThreads({ maxMessageBytes: 65_536 }) })
  const first = openPage(server)
  await first.client.sendMessage('one')
  expect(await first.client.sendMessage('x'.repeat(80_000))).toMatchObject({ status: 'failed' })
  const second = openPage(server, { local: first.local })
  await vi.waitUntil(() => said(second).length === 2)
  await first.client.sendMessage('two')
  for (const page of [second, first]) {
    await vi.waitUntil(() => statusOf(page) === 'ready' && said(page).length === 2)
    expect(said(page)).toEqual(['one', 'two'])
  }
  await second.client.sendMessage('three')
  expect(said(second)).toEqual(['one', 'two', 'three'])
  await vi.waitUntil(() => first.local.texts.size === 0)
})
