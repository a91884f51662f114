import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { aiSdkRoute } from '../interop/ai-sdk-route.js'
import { answerFetch } from '../interop/fetch-server.js'
import { prompts } from '../interop/our-agent.js'
import { type ChatPage, launchBrowser, openChat } from './demo.js'
import { pageOnOtherServer } from './other-server.js'
import { approve, deny } from './page-script/bench.js'

/** The one line that the page changes, with what it imports. */
const connection = `
import { indexedDb } from '@countersign/client/indexed-db'
import { aiSdk } from '@countersign/ai-sdk'
export const server = { connection: aiSdk({ api: '/api/chat' }), persistence: indexedDb() }
`

let browser: Browser

beforeAll(async () => {
  browser = await launchBrowser()
})
afterAll(() => browser.close())

test('the module that is replaced holds one statement and what it imports', async () => {
  const seam = join(import.meta.dirname, '../../examples/page/src/connection.ts')
  const code = (await readFile(seam, 'utf8')).split('\n').filter((line) => /^[a-z]/.test(line))
  expect(code.filter((line) => !line.startsWith('import '))).toEqual([
    expect.stringMatching(/^export const server = /),
  ])
})

test('the example page works on an AI SDK route by one changed line: asked, approved, denied, chained, moved on, reloaded', async () => {
  const { route, sent } = aiSdkRoute({ secret: 'a-secret-of-this-test-0123456789abcdef' })
  const page = await pageOnOtherServer(connection, (request, response) =>
    answerFetch(route, request, response),
  )
  const chat = await openChat(browser, page)
  await chat.send(prompts.hello)
  await said(chat, 'Hello, Ada.')

  await chat.send(prompts.two)
  await chat.page.getByText('2 requests are waiting for you').waitFor()
  // the AI SDK has no place for edited arguments, so none is offered
  expect(await chat.page.getByRole('button', { name: 'Edit…' }).count()).toBe(0)
  await deny(chat.request('bob'), 'Bob is away')
  expect(sent).toEqual([])
  await approve(chat.request('ada'))
  await said(chat, 'Bob is away')
  expect(sent).toEqual(['ada'])

  await chat.send(prompts.chain)
  await approve(chat.request('ada'))
  await chat.request('bob').waitFor()
  // This server keeps no run: one that is cut off by the reload ends with an error.
  await chat.settled()
  await chat.page.reload()
  await approve(chat.request('bob'))
  await chat.settled()
  await expect.poll(() => sent).toEqual(['ada', 'ada', 'bob'])

  await chat.send(prompts.mail)
  await chat.request('ada').waitFor()
  await chat.send(prompts.hello)
  await expect.poll(() => chat.page.locator('.prose').filter({ hasText: 'Hello, Ada.' }).count()).toBe(2)
  await chat.settled()
  expect(sent).toEqual(['ada', 'ada', 'bob'])
  expect(chat.complaints).toEqual([])
})

async function said(chat: ChatPage, text: string): Promise<void> {
  await chat.page.locator('.prose').filter({ hasText: text }).first().waitFor()
  await chat.settled()
}
