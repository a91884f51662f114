import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Browser, BrowserContext } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { full } from '../full.js'
import { busyBeforeClick } from './busy.js'
import { type ChatPage, demoServer, launchBrowser, openTab } from './demo.js'
import { startWire, type Wire } from './wire.js'

let browser: Browser
const server = demoServer()
let wire: Wire | undefined
let context: BrowserContext | undefined

beforeAll(async () => {
  browser = await launchBrowser()
})

afterAll(async () => {
  await browser?.close()
  await server.close()
})

afterEach(close)

async function close() {
  await context?.close()
  await wire?.close()
  context = undefined
  wire = undefined
}

/** Fresh files and a fresh browser profile; `open` opens one more tab. */
async function begin() {
  await close()
  const demo = await server.open()
  const cable = await startWire(demo.url)
  const profile = await browser.newContext({ viewport: { width: 1100, height: 900 } })
  wire = cable
  context = profile
  return {
    wire: cable,
    /** Waits until the answer to the next request has come as far as a frame with `text`, and holds it there. */
    async during(text: string, act: () => Promise<void>) {
      cable.holdAfter(text)
      await act()
      await cable.held()
    },
    /** One more tab: of a new conversation, or of that of another tab. */
    open: (other?: ChatPage) => openTab(profile, other?.page.url() ?? cable.url),
    has: (path: string) => existsSync(join(demo.folder, path)),
    /** How often the tool that sends mail has run: each run makes a file. */
    mails: async () => (existsSync(join(demo.folder, 'outbox')) ? readdir(join(demo.folder, 'outbox')) : []),
  }
}

const mailing = 'mail the team "The logs are tidy."'
const mailTo = 'team@example.org'

/** Delays in milliseconds, the same in every run: a seeded generator (mulberry32). `npm test` takes the first of them. */
function delays(seed: number, count: number, most: number): number[] {
  let state = seed
  return Array.from({ length: full ? count : 1 }, () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * most)
  })
}

/** How far the answer to a yes has come when something happens to it. */
const places = full ? ['RUN_STARTED', 'TOOL_CALL_RESULT', 'TEXT_MESSAGE_CONTENT'] : ['TOOL_CALL_RESULT']

const approveOnce = (card: ReturnType<ChatPage['request']>) =>
  card.getByRole('button', { name: 'Approve once' }).click()

const isDone = (chat: ChatPage, tool = 'send_email') => chat.cards(tool).filter({ hasText: 'Done' }).waitFor()

const late = (chat: ChatPage) => chat.page.getByText('This was answered before, perhaps in another tab.')

test('two tabs show the same request; one approves, the other sees it, and its late click is told so', async () => {
  for (const [round, delay] of delays(1, 2, 60).entries()) {
    const { open, mails } = await begin()
    const first = await open()
    await first.send(mailing)
    await first.request(mailTo).waitFor()
    await first.settled()
    const second = await open()
    await second.request(mailTo).waitFor()
    if (round === 0) await second.screenshot('tabs-second')
    // The second follows; it is busy while the first answers.
    const { click } = await busyBeforeClick(second, 'Approve once')
    await approveOnce(first.request(mailTo))
    await sleep(delay)
    await click()
    await late(second).waitFor()
    for (const tab of [first, second]) await isDone(tab)
    await second.settled()
    expect(await late(first).count()).toBe(0)
    if (round === 0) await second.screenshot('tabs-late')
    expect(await mails()).toHaveLength(1)
    expect(first.requests() + second.requests()).toBe(2)
    expect([...first.complaints, ...second.complaints]).toEqual([])
  }
})

test('E.10 two tabs answer differently: the first wins, the second is told', async () => {
  for (const [round, delay] of delays(2, 4, 80).entries()) {
    const { open, mails } = await begin()
    const tabs = [await open(), await open()] as const
    // The tab that leads is once the one that approves and once the one that denies.
    const [yes, no] = round % 2 === 0 ? tabs : ([tabs[1], tabs[0]] as const)
    await tabs[1].send(mailing)
    for (const tab of tabs) await tab.request(mailTo).waitFor()
    await tabs[0].settled()
    await no.request(mailTo).getByRole('button', { name: 'Deny…' }).click()
    const clicks = [await busyBeforeClick(yes, 'Approve once'), await busyBeforeClick(no, 'Deny')]
    if (round % 3 !== 0) clicks.reverse()
    const [sooner, later] = clicks.map(({ click }) => click)
    await Promise.all([sooner?.(), sleep(round < 2 ? 0 : delay).then(later)])
    await expect.poll(async () => (await late(yes).count()) + (await late(no).count())).toBe(1)
    const approved = (await late(no).count()) === 1
    for (const tab of tabs) {
      await tab
        .cards('send_email')
        .filter({ hasText: approved ? 'Done' : 'Denied' })
        .waitFor()
      await tab.settled()
    }
    expect(await mails()).toHaveLength(approved ? 1 : 0)
    expect(tabs[0].requests() + tabs[1].requests()).toBe(2)
  }
})

test('E.8 a reload with one request pending and one answered but unsent: both are there, answering completes both', async () => {
  for (const [round, delay] of delays(3, 2, 120).entries()) {
    const { open, has } = await begin()
    const chat = await open()
    await chat.send('Delete notes.txt and todo.md')
    await chat.request('todo.md').waitFor()
    await chat.settled()
    await approveOnce(chat.request('notes.txt'))
    await chat.cards().filter({ hasText: 'Approved, not sent yet' }).waitFor()
    await sleep(delay)
    await chat.page.reload()
    await chat.request('todo.md').waitFor()
    await chat.cards().filter({ hasText: 'Approved, not sent yet' }).waitFor()
    await chat.page.getByText('One request is waiting for you').waitFor()
    if (round === 0) await chat.screenshot('reload-pending')
    expect(chat.requests()).toBe(1)
    expect([has('notes.txt'), has('todo.md')]).toEqual([true, true])
    await approveOnce(chat.request('todo.md'))
    await chat.page.locator('.prose').filter({ hasText: 'Deleted todo.md' }).waitFor()
    await chat.settled()
    expect([has('notes.txt'), has('todo.md')]).toEqual([false, false])
    expect(await chat.cards('delete_file').filter({ hasText: 'Done' }).count()).toBe(2)
    expect(chat.requests()).toBe(2)
    expect(chat.complaints).toEqual([])
  }
})

test('an answer that was not sent is told of after a reload, and goes out when the person says so', async () => {
  const { open, mails } = await begin()
  const chat = await open()
  await chat.send(mailing)
  await chat.request(mailTo).waitFor()
  await chat.settled()
  await chat.page.route('**/api/chat', (route) => route.abort('connectionrefused'), { times: 1 })
  await approveOnce(chat.request(mailTo))
  await chat.page.getByRole('alert').waitFor()
  await sleep(300)
  await chat.page.reload()
  await chat.page.getByText('Your answer has not been sent').waitFor()
  await chat.screenshot('reload-unsent')
  await sleep(300)
  expect(await mails(), 'nothing runs by itself').toEqual([])
  await chat.page.getByRole('button', { name: 'Send it' }).click()
  await isDone(chat)
  await chat.settled()
  expect(await mails()).toHaveLength(1)
  expect(await chat.page.getByText('Your answer').count()).toBe(0)
})

/** What the person does who comes back: sends what was not sent, answers what is still asked. */
async function finishUp(chat: ChatPage) {
  const send = chat.page.getByRole('button', { name: /^(Send it|Send it again|Retry)$/ })
  const done = chat.cards('send_email').filter({ hasText: 'Done' })
  const asked = chat.request(mailTo).getByRole('button', { name: 'Approve once' })
  await send.or(done).or(asked).first().waitFor()
  if ((await asked.count()) > 0) await asked.click()
  else if ((await send.count()) > 0) await send.first().click()
  await isDone(chat)
  await chat.settled()
}

test('the tab is closed during a continuation: whoever comes back finds everything, and the tool ran once', async () => {
  const seen = new Set<string>()
  for (const place of ['the click', ...places]) {
    const { open, mails, during, wire } = await begin()
    const chat = await open()
    await chat.send(mailing)
    await chat.request(mailTo).waitFor()
    await chat.settled()
    const approving = () => approveOnce(chat.request(mailTo))
    await (place === 'the click' ? approving() : during(place, approving))
    await chat.page.close()
    wire.release()
    const back = await open()
    await back.cards('send_email').waitFor()
    const title = await back.page.locator('.unsent-title').allInnerTexts()
    seen.add(title[0] ?? 'nothing to send')
    if (title.length > 0) await back.screenshot('reload-doubt')
    expect(back.requests(), 'nothing runs by itself').toBe(0)
    await finishUp(back)
    expect(await mails(), `closed after ${place}`).toHaveLength(1)
    expect(await back.cards('send_email').count()).toBe(1)
    expect(await back.page.locator('.user-text').count()).toBe(1)
    expect(back.complaints).toEqual([])
  }
  console.log(`after coming back: ${[...seen].join('; ')}`)
})

test('the leading tab closes while another is open: the other takes over, nothing is lost or run twice', async () => {
  for (const [round, place] of ['the last answer', 'the click', ...places].entries()) {
    const { open, mails, during, wire } = await begin()
    const first = await open()
    await first.send(mailing)
    await first.request(mailTo).waitFor()
    await first.settled()
    const second = await open()
    await second.request(mailTo).waitFor()
    if (round === 0) {
      // Between two acts.
      await first.page.close()
      await approveOnce(second.request(mailTo))
      await isDone(second)
    } else {
      // During the continuation of the second's own answer, which the first has sent.
      const approving = () => approveOnce(second.request(mailTo))
      await (place === 'the click' ? approving() : during(place, approving))
      await first.page.close()
      wire.release()
      await finishUp(second)
    }
    await second.settled()
    expect(await mails(), `closed after ${place}`).toHaveLength(1)
    expect(await second.cards('send_email').count()).toBe(1)
    await second.send('hello')
    await second.page.locator('.prose').filter({ hasText: 'Ask for something' }).waitFor()
    expect(second.complaints).toEqual([])
  }
})

test('offline during a continuation: it is told, and retry completes it once', async () => {
  for (const place of ['before it is sent', ...places]) {
    const { open, mails, during, wire } = await begin()
    const chat = await open()
    await chat.send(mailing)
    await chat.request(mailTo).waitFor()
    await chat.settled()
    const approving = () => approveOnce(chat.request(mailTo))
    if (place === 'before it is sent') {
      wire.cut()
      await approving()
    } else {
      await during(place, approving)
      wire.cut()
      wire.release()
    }
    await chat.page.getByRole('alert').waitFor()
    if (place === 'before it is sent') await chat.screenshot('offline')
    await chat.page.getByRole('button', { name: 'Retry' }).first().click()
    await chat.page.getByRole('alert').waitFor()
    wire.mend()
    await chat.page.getByRole('button', { name: 'Retry' }).first().click()
    await isDone(chat)
    await chat.settled()
    expect(await chat.page.getByRole('alert').count()).toBe(0)
    expect(await mails(), `offline after ${place}`).toHaveLength(1)
    expect(await chat.cards('send_email').count()).toBe(1)
  }
})
