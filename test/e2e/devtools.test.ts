import { readFile } from 'node:fs/promises'
import { readRecording } from '@countersign/devtools'
import { replayRecording } from '@countersign/testing'
import type { Browser, BrowserContextOptions, Locator } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from 'vitest'
import { full } from '../full.js'
import { type ChatPage, demoServer, launchBrowser, openChat } from './demo.js'
import { startWire, type Wire } from './wire.js'

let browser: Browser
const server = demoServer()
let chat: ChatPage | undefined
let wire: Wire | undefined

beforeAll(async () => {
  browser = await launchBrowser()
})
afterAll(async () => {
  await browser?.close()
  await server.close()
})
afterEach(async () => {
  await chat?.page.context().close()
  await wire?.close()
  chat = undefined
  wire = undefined
})

const query = '/?devtools'

async function open(options: BrowserContextOptions = {}): Promise<ChatPage & { wire: Wire }> {
  wire = await startWire((await server.open()).url)
  chat = await openChat(browser, wire.url + query, { viewport: { width: 1280, height: 1000 }, ...options })
  await chat.page.locator('countersign-devtools').waitFor()
  return { ...chat, wire }
}

const approve = (card: Locator) => card.getByRole('button', { name: 'Approve once' }).click()

/** Files are deleted after a yes, and the mail that follows is approved while the stream that asks for it is open. */
async function chained(on: ChatPage & { wire: Wire }): Promise<void> {
  await on.send('Tidy up the logs, then mail the team a summary')
  await on.page.getByText('3 requests are waiting for you').waitFor()
  await on.settled()
  on.wire.holdAfter('approval-requested')
  for (const path of ['logs/app.2.log', 'logs/import-debug.log', 'logs/app.3.log'])
    await approve(on.request(path))
  await approve(on.request('team@example.org'))
  on.wire.release()
  await on.page.locator('.prose').filter({ hasText: 'Sent “What was done with the files”' }).waitFor()
  await on.settled()
}

async function exported({ page }: ChatPage): Promise<string> {
  const download = page.waitForEvent('download')
  await page.getByRole('button', { name: 'Export' }).click()
  return readFile(await (await download).path(), 'utf8')
}

test('I.2 the chained scenario, recorded in the browser and exported, replays to the same states', async () => {
  const on = await open()
  await chained(on)
  expect(on.requests()).toBe(3)
  const text = await exported(on)
  const recording = readRecording(text)
  expect(recording).toMatchObject({ cut: 0, masked: true })
  expect(text).not.toMatch(/"token": "(?!\[REDACTED\])/)
  const states = recording.entries.flatMap((entry) => (entry.kind === 'state' ? [entry] : []))
  expect(states.map(({ flags }) => flags)).toContainEqual({
    continuationPending: true,
    continuationSkipped: true,
  })
  const replayed = await replayRecording(recording)
  expect(replayed.requests).toHaveLength(3)
  const replayedStates = replayed.entries.flatMap((entry) => (entry.kind === 'state' ? [entry.text] : []))
  expect(replayedStates).toEqual(states.map(({ text }) => text))
  expect(on.complaints).toEqual([])

  const timeline = on.page.getByRole('listbox', { name: 'Timeline' })
  await timeline.focus()
  await on.page.keyboard.press('End')
  const detail = on.page.getByRole('region', { name: 'Entry and state' })
  const lit = detail.getByText('continuationSkipped: yes')
  while (!(await lit.isVisible())) {
    expect(await timeline.getAttribute('aria-activedescendant'), 'an entry shows both flags').not.toBe(
      'entry-0',
    )
    await on.page.keyboard.press('ArrowUp')
  }
  await detail.getByText('continuationPending: yes').waitFor()
  await on.screenshot('devtools')
})

test('I.2 an entry shows the chat as it was; kinds are hidden, values shown, the view held, all by keyboard', async () => {
  const on = await open()
  const { page } = on
  await on.send('Write "The key is under the mat." to door.txt')
  await on.request('door.txt').waitFor()
  await on.settled()
  const timeline = page.getByRole('listbox', { name: 'Timeline' })
  const detail = page.getByRole('region', { name: 'Entry and state' })
  await timeline.focus()
  await page.keyboard.press('End')
  await detail.getByText('awaiting-approval', { exact: true }).waitFor()
  await page.keyboard.press('Home')
  await detail.getByText('No messages.').waitFor()
  const chosen = await timeline.getAttribute('aria-activedescendant')
  await page.keyboard.press('ArrowDown')
  expect(await timeline.getAttribute('aria-activedescendant')).not.toBe(chosen)
  await detail.locator('.said').filter({ hasText: 'The key is under the mat.' }).waitFor()

  const events = page.getByRole('button', { name: 'Events' })
  await events.focus()
  await page.keyboard.press('Space')
  expect(await events.getAttribute('aria-pressed')).toBe('false')
  expect(await page.locator('countersign-devtools .row[data-kind="event"]').count()).toBe(0)
  await page.keyboard.press('Space')

  expect(await exported(on)).not.toMatch(/"token": "(?!\[REDACTED\])/)
  await page.getByRole('button', { name: 'Show values' }).click()
  expect(await exported(on)).toMatch(/"token": "(?!\[REDACTED\])/)

  await page.getByRole('button', { name: 'Pause' }).click()
  const held = await page.getByRole('status').filter({ hasText: 'Paused' }).textContent()
  const rows = await timeline.locator('.row').first().getAttribute('aria-setsize')
  await approve(on.request('door.txt'))
  await on.settled()
  expect(await timeline.locator('.row').first().getAttribute('aria-setsize')).toBe(rows)
  expect(held).toContain('Paused')
  expect(on.complaints).toEqual([])
})

test('I.2 a recording is opened in a page, and nothing in it becomes markup', async () => {
  const on = await open({ viewport: { width: 360, height: 760 }, colorScheme: 'dark' })
  const { page } = on
  await on.send('Write "<img src=x onerror=alert(1)>" to <b>door</b>.txt')
  await on.request('door').waitFor()
  await on.settled()
  const text = await exported(on)
  const file = { name: 'recording.json', mimeType: 'application/json', buffer: Buffer.from(text) }
  await page.locator('countersign-devtools input[type=file]').setInputFiles(file)
  await page.getByRole('button', { name: 'Back to the chat' }).waitFor()
  const timeline = page.getByRole('listbox', { name: 'Timeline' })
  await timeline.focus()
  await page.keyboard.press('End')
  await page
    .getByRole('region', { name: 'Entry and state' })
    .getByText('awaiting-approval', { exact: true })
    .waitFor()
  expect(await page.locator('countersign-devtools img, countersign-devtools article b b').count()).toBe(0)
  const width = await page.evaluate(() => document.documentElement.scrollWidth)
  expect(width).toBeLessThanOrEqual(360)
  await on.screenshot('devtools-phone-dark')
  const wrong = { ...file, buffer: Buffer.from('{"version":2}') }
  await page.locator('countersign-devtools input[type=file]').setInputFiles(wrong)
  await page.getByRole('alert').filter({ hasText: 'This is no recording of a chat' }).waitFor()
  await page.getByRole('button', { name: 'Back to the chat' }).click()
  await page.getByRole('status').filter({ hasText: 'Live' }).waitFor()
  expect(on.complaints).toEqual([])
})

test('I.2 without the query nothing of the devtools is loaded', async () => {
  chat = await openChat(browser, (await server.open()).url)
  expect(await chat.page.evaluate(() => customElements.get('countersign-devtools') === undefined)).toBe(true)
  expect(await chat.page.locator('countersign-devtools').count()).toBe(0)
})

test.each(full ? (['solid', 'vue', 'svelte'] as const) : [])(
  'I.2 the page in %s shows it by the same query',
  async (name) => {
    const other = demoServer(name)
    onTestFinished(other.close)
    chat = await openChat(browser, (await other.open()).url + query)
    await chat.send('Help')
    await chat.page
      .getByRole('status')
      .filter({ hasText: /Live: \d+ entries/ })
      .waitFor()
    await chat.settled()
    expect(chat.complaints).toEqual([])
  },
)
