import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { prompts } from '../interop/our-agent.js'
import { serveTanstack, tanstackRoute } from '../interop/tanstack-route.js'
import { type ChatPage, launchBrowser, openChat } from './demo.js'
import { pageOnOtherServer } from './other-server.js'
import { approve, deny } from './page-script/bench.js'

/** The one line that the page changes. */
const connection = `
import { indexedDb } from '@countersign/client/indexed-db'
import { fetchServerSentEvents } from '@countersign/client'
import { tanstack } from '@countersign/tanstack'
export const server = { connection: tanstack()(fetchServerSentEvents('/api/chat'), console.warn), persistence: indexedDb() }
`

let browser: Browser

beforeAll(async () => {
  browser = await launchBrowser()
})
afterAll(() => browser.close())

test('the example page works on a TanStack chat() route by one changed line: asked, denied, edited, chained, reloaded', async () => {
  const route = tanstackRoute()
  const chat = await openChat(browser, await pageOnOtherServer(connection, serveTanstack(route)))
  await chat.send(prompts.hello)
  await said(chat, 'Hello, Ada.')

  await chat.send(prompts.two)
  await chat.page.getByText('2 requests are waiting for you').waitFor()
  await deny(chat.request('bob'), 'Bob is away')
  expect(route.sent).toEqual([])
  await approve(chat.request('ada'))
  await said(chat, 'Bob is away')
  expect(route.sent).toEqual(['ada'])

  await chat.send(prompts.mail)
  const card = chat.request('send_mail')
  await card.getByRole('button', { name: 'Edit…' }).click()
  await card.getByLabel('to').fill('cleo')
  await card.getByRole('button', { name: 'Approve with changes' }).click()
  await said(chat, '"to":"cleo"')
  expect(route.sent).toEqual(['ada', 'cleo'])

  await chat.send(prompts.chain)
  await approve(chat.request('ada'))
  await chat.request('bob').waitFor()
  // This server keeps no run: one that is cut off by the reload ends with an error.
  await chat.settled()
  await chat.page.reload()
  await approve(chat.request('bob'))
  await chat.settled()
  await expect.poll(() => route.sent).toEqual(['ada', 'cleo', 'ada', 'bob'])
  expect(chat.complaints).toEqual([])
})

async function said(chat: ChatPage, text: string): Promise<void> {
  await chat.page.locator('.prose').filter({ hasText: text }).first().waitFor()
  await chat.settled()
}
