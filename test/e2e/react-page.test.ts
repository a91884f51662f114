import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Browser, BrowserContextOptions } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type ChatPage, type DemoServer, launchBrowser, openChat, startDemo } from './demo.js'

let browser: Browser
let server: DemoServer | undefined
let chat: ChatPage | undefined

beforeAll(async () => {
  browser = await launchBrowser()
})

afterAll(() => browser?.close())

afterEach(async () => {
  await chat?.page.context().close()
  await server?.close()
  chat = undefined
  server = undefined
})

/** A fresh server with fresh files, and a page on it. */
async function open(delay = 0, options: BrowserContextOptions = {}) {
  server = await startDemo(delay)
  chat = await openChat(browser, server.url, options)
  const { folder } = server
  return {
    ...chat,
    has: (path: string) => existsSync(join(folder, path)),
    read: (path: string) => readFile(join(folder, path), 'utf8'),
    list: (path: string) => readdir(join(folder, path)),
  }
}

const approve = (card: ReturnType<ChatPage['request']>) =>
  card.getByRole('button', { name: 'Approve once' }).click()

async function deny(card: ReturnType<ChatPage['request']>, reason: string) {
  await card.getByRole('button', { name: 'Deny…' }).click()
  await card.getByLabel('Why not?').fill(reason)
  await card.getByRole('button', { name: 'Deny', exact: true }).click()
}

test('the chained scenario: files are deleted, a denied one stays, the mail that follows tells of both', async () => {
  const { page, send, request, settled, answers, ...demo } = await open(5)
  await demo.screenshot('light-empty')
  await page.getByRole('button', { name: 'Tidy up the logs, then mail the team a summary' }).click()
  await settled()
  await page.getByText('3 requests wait for you').waitFor()
  await demo.screenshot('light-requests')

  await approve(request('logs/app.2.log'))
  await deny(request('logs/import-debug.log'), 'Mara needs it for the audit')
  expect(demo.requests(), 'nothing is sent while a request of the turn is open').toBe(1)
  expect(demo.has('logs/app.2.log')).toBe(true)
  await approve(request('logs/app.3.log'))

  const mail = request('team@example.org')
  await mail.waitFor()
  expect(demo.has('logs/app.2.log')).toBe(false)
  expect(demo.has('logs/app.3.log')).toBe(false)
  expect(demo.has('logs/app.log')).toBe(true)
  expect(demo.has('logs/import-debug.log')).toBe(true)
  expect(await answers()).toContain(
    'Kept logs/import-debug.log, as you decided: “Mara needs it for the audit”.',
  )
  await settled()
  await demo.screenshot('light-mail')

  expect(demo.has('outbox')).toBe(false)
  await approve(mail)
  await page.locator('.prose').filter({ hasText: 'Sent “What was done with the files”' }).waitFor()
  const [file] = await demo.list('outbox')
  const eml = (await demo.read(`outbox/${file}`)).replaceAll('=\r\n', '')
  expect(eml).toContain('To: team@example.org\r\n')
  expect(eml).toContain('Deleted logs/app.2.log')
  expect(eml).toContain('Mara needs it for the audit')
  await settled()
  expect(demo.requests()).toBe(3)
  await demo.screenshot('light-done')
  expect(demo.complaints).toEqual([])
})

test('an edit: what the person wrote is what runs, and the card says so', async () => {
  const { send, request, cards, settled, ...demo } = await open()
  await send('Write "Back at noon." to door.txt')
  const card = request('door.txt')
  await card.getByRole('button', { name: 'Edit…' }).click()
  await card.getByLabel('content').fill('Back at one.')
  await demo.screenshot('light-edit')
  await card.getByLabel('content').press('Escape')
  await card.getByRole('button', { name: 'Edit…' }).click()
  expect(await card.getByLabel('content').inputValue(), 'going back loses nothing').toBe('Back at one.')
  await card.getByRole('button', { name: 'Approve with changes' }).click()
  await cards('write_file')
    .filter({ hasText: 'You approved this with changes' })
    .filter({ hasText: 'Done' })
    .waitFor()
  await settled()
  expect(await demo.read('door.txt')).toBe('Back at one.')
  expect(demo.complaints).toEqual([])
})

test('an edit that the tool refuses runs nothing and is told', async () => {
  const { page, send, request, cards, settled, ...demo } = await open()
  await send('mail the team "The logs are tidy."')
  const card = request('team@example.org')
  await card.getByRole('button', { name: 'Edit…' }).click()
  await card.getByLabel('to', { exact: true }).fill('nobody')
  await card.getByRole('button', { name: 'Approve with changes' }).click()
  await cards('send_email').filter({ hasText: 'Refused' }).waitFor()
  await cards('send_email').getByText('Give one or more mail addresses').waitFor()
  await page.locator('.prose').filter({ hasText: 'the answer could not be accepted' }).waitFor()
  await settled()
  expect(demo.has('outbox')).toBe(false)
  expect(demo.complaints).toEqual([])
})

test('approving while other requests still stream in: nothing is lost, one continuation follows', async () => {
  const { page, send, request, cards, settled, ...demo } = await open(60)
  const files = [
    'notes.txt',
    'todo.md',
    'reports/quarter-2.md',
    'reports/quarter-3.md',
    'reports/budget.csv',
    'logs/app.log',
  ]
  await send(`Delete ${files.join(', ')}`)
  await approve(request('notes.txt'))
  await cards().filter({ hasText: 'Approved, not sent yet' }).waitFor()
  expect(await page.locator('.thread').getAttribute('aria-busy'), 'the stream is still open').toBe('true')
  for (const file of files.slice(1)) await approve(request(file))
  await page.locator('.prose').filter({ hasText: 'Deleted logs/app.log' }).waitFor()
  await settled()
  expect(files.filter(demo.has)).toEqual([])
  expect(demo.requests()).toBe(2)
  expect(demo.complaints).toEqual([])
})

test('stop ends the answer at once and the chat goes on', async () => {
  const { page, send, answers, settled, ...demo } = await open(40)
  await send('help')
  await page.locator('.prose').first().waitFor()
  await page.getByRole('button', { name: 'Stop' }).click()
  const text = await answers()
  expect(await page.getByRole('button', { name: 'Stop' }).count()).toBe(0)
  await send('hello')
  await page.locator('.prose').filter({ hasText: 'Ask for something' }).waitFor()
  await settled()
  expect(await answers()).toMatch(new RegExp(`^${text.slice(0, 20)}`))
  expect(await answers()).not.toContain('Join requests with')
  expect(demo.complaints).toEqual([])
})

test('a failed request is told with the way out, and retry sends the same answer once', async () => {
  const { page, send, request, cards, settled, ...demo } = await open()
  await page.route('**/api/chat', (route) => route.abort('connectionrefused'), { times: 1 })
  await send('delete notes.txt')
  await page.getByRole('alert').getByText('The server could not be reached', { exact: true }).waitFor()
  await demo.screenshot('light-error')
  await page.getByRole('button', { name: 'Retry' }).click()
  await request('notes.txt').waitFor()
  expect(await page.getByRole('alert').count()).toBe(0)

  await settled()
  await page.route('**/api/chat', (route) => route.abort('connectionrefused'), { times: 1 })
  await approve(request('notes.txt'))
  await cards('delete_file').filter({ hasText: 'Approved, not sent yet' }).waitFor()
  expect(demo.has('notes.txt')).toBe(true)
  await page.getByRole('button', { name: 'Retry' }).click()
  await page.locator('.prose').filter({ hasText: 'Deleted notes.txt' }).waitFor()
  expect(demo.has('notes.txt')).toBe(false)
  // The browser itself reports the two requests that this test has cut.
  expect(demo.complaints.filter((text) => !text.includes('ERR_CONNECTION_REFUSED'))).toEqual([])
})

test('messages queue while an answer streams, and can be taken back', async () => {
  const { page, send, settled, ...demo } = await open(30)
  await send('help')
  await page.locator('.prose').first().waitFor()
  await send('read todo.md')
  await send('hello')
  await page.getByRole('button', { name: 'Do not send: hello' }).click()
  expect(await page.locator('.queue-text').allInnerTexts()).toEqual(['read todo.md'])
  await page.locator('.prose').filter({ hasText: 'Renew the harbour radio licence' }).waitFor()
  await settled()
  expect(await page.locator('.user-text').allInnerTexts()).toEqual(['help', 'read todo.md'])
  expect(demo.complaints).toEqual([])
})

test('speaking while a request is open withdraws it, runs nothing, and the answer says so', async () => {
  const { page, send, request, cards, settled, ...demo } = await open()
  await send('delete notes.txt')
  await request('notes.txt').waitFor()
  await settled()
  await page.getByRole('textbox', { name: 'Message' }).fill('read notes.txt')
  await page.getByText('Sending a message withdraws the open request.').waitFor()
  await page.keyboard.press('Enter')
  await cards('delete_file').filter({ hasText: 'Withdrawn' }).waitFor()
  await page.locator('.prose').filter({ hasText: 'Kept notes.txt' }).waitFor()
  await settled()
  expect(demo.has('notes.txt')).toBe(true)
  expect(demo.complaints).toEqual([])
})

test('S3.93 a double click gives one answer', async () => {
  const { page, send, request, settled, ...demo } = await open()
  await send('delete notes.txt')
  await request('notes.txt').getByRole('button', { name: 'Approve once' }).dblclick({ force: true })
  await page.locator('.prose').filter({ hasText: 'Deleted notes.txt' }).waitFor()
  await settled()
  expect(demo.requests()).toBe(2)
  expect(demo.complaints).toEqual([])
})

test('S3.98 keyboard alone: focus goes from request to request, Escape answers nothing', async () => {
  const { page, send, request, settled, ...demo } = await open()
  await send('Delete notes.txt and todo.md')
  await request('todo.md').waitFor()
  await settled()
  const focused = () => page.evaluate(() => document.activeElement?.closest('.tool')?.textContent ?? '')
  await page.getByRole('button', { name: 'Show next' }).focus()
  await page.keyboard.press('Enter')
  expect(await focused()).toContain('notes.txt')
  await page.keyboard.press('Tab')
  expect(await page.evaluate(() => document.activeElement?.textContent)).toBe('Approve once')
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await page.keyboard.type('not this one')
  await page.keyboard.press('Escape')
  expect(await request('notes.txt').count(), 'Escape is no answer').toBe(1)
  expect(await focused()).toContain('notes.txt')
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await page.getByText('One request waits for you').waitFor()
  expect(await focused(), 'the focus moved on to the next request').toContain('todo.md')
  await page.keyboard.press('Tab')
  await page.keyboard.press('Tab')
  await page.keyboard.press('Enter')
  await page.keyboard.type('still needed')
  await page.keyboard.press('Enter')
  await page.locator('.prose').filter({ hasText: 'Kept todo.md, as you decided: “still needed”.' }).waitFor()
  expect([demo.has('notes.txt'), demo.has('todo.md')]).toEqual([false, true])
  expect(demo.complaints).toEqual([])
})

test('S3.91 S3.92 only what is offered can be chosen, and "always" asks no second time in this chat', async () => {
  const { page, send, request, cards, settled, ...demo } = await open()
  await send('rename notes.txt to a.txt, then rename a.txt to b.txt, then delete b.txt')
  await request('notes.txt').getByRole('button', { name: 'Always (this session)' }).click()
  const last = request('b.txt')
  await last.getByRole('button', { name: 'Approve once' }).waitFor()
  expect(await last.getByRole('button', { name: 'Always' }).count()).toBe(0)
  expect(await last.getByRole('button', { name: 'Edit' }).count()).toBe(0)
  await cards('move_file').filter({ hasText: 'You approved this for the rest of this chat' }).waitFor()
  expect([demo.has('notes.txt'), demo.has('a.txt'), demo.has('b.txt')]).toEqual([false, false, true])
  await settled()
  expect(demo.complaints).toEqual([])
})

test('S3.99 arguments are text, never markup, and hidden characters are written out', async () => {
  const { page, send, request, ...demo } = await open()
  await send('write "<img src=x onerror=alert(1)> a\u202Eb" to page.html')
  const card = request('page.html')
  await card.getByText('<img src=x onerror=alert(1)>').waitFor()
  await card.getByText('⟨U+202E⟩').waitFor()
  await card.getByText('Careful: some characters here are invisible').waitFor()
  expect(await page.locator('img').count()).toBe(0)
  expect(demo.complaints).toEqual([])
})

test('a long argument is cut, and approving waits until all of it was shown', async () => {
  const { send, request, settled, ...demo } = await open()
  await send(`write "${'All work and no play. '.repeat(60)}" to long.txt`)
  const card = request('long.txt')
  const yes = card.getByRole('button', { name: 'Approve once' })
  await yes.waitFor()
  expect(await yes.isDisabled()).toBe(true)
  await demo.screenshot('light-long')
  await card.getByRole('button', { name: 'Show all' }).click()
  expect(await yes.isDisabled()).toBe(false)
  await yes.click()
  await settled()
  await expect.poll(() => demo.has('long.txt')).toBe(true)
  expect(demo.complaints).toEqual([])
})

test('a tool that fails is told as it is', async () => {
  const { page, send, request, cards, ...demo } = await open()
  await send('delete nope.txt')
  await approve(request('nope.txt'))
  await cards('delete_file').filter({ hasText: 'Failed' }).waitFor()
  await page.locator('.prose').filter({ hasText: 'There is no nope.txt in the workspace.' }).waitFor()
  expect(demo.complaints).toEqual([])
})

test('a new chat begins empty and nothing of the old one is answered', async () => {
  const { page, send, request, ...demo } = await open()
  await send('delete notes.txt')
  await request('notes.txt').waitFor()
  await page.getByRole('button', { name: 'New chat' }).click()
  await page.getByRole('heading', { name: 'Ask. Read. Sign.' }).waitFor()
  expect(await page.locator('.pending-bar').count()).toBe(0)
  await send('hello')
  await page.locator('.prose').filter({ hasText: 'Ask for something' }).waitFor()
  expect(demo.has('notes.txt')).toBe(true)
  expect(demo.complaints).toEqual([])
})

test.each([
  ['dark', { colorScheme: 'dark' }],
  ['phone', { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true }],
  ['phone-dark', { viewport: { width: 360, height: 740 }, colorScheme: 'dark' }],
] satisfies [string, BrowserContextOptions][])(
  'looks: %s, without sideways scrolling',
  async (name, options) => {
    const { page, send, request, settled, ...demo } = await open(0, options)
    await demo.screenshot(`${name}-empty`)
    await send('Tidy up the logs')
    await approve(request('logs/app.2.log'))
    await deny(request('logs/import-debug.log'), 'Mara needs it for the audit')
    await settled()
    await demo.screenshot(`${name}-requests`)
    const sideways = await page.evaluate(
      () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
    )
    expect(sideways).toBe(0)
    expect(demo.complaints).toEqual([])
  },
)
