import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Browser, BrowserContext } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { full, fullTest } from '../full.js'
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
    /** One more tab: of a new conversation, or of that of another tab, after something has happened to that. */
    async open(other?: ChatPage, act = async () => {}) {
      const url = other?.page.url() ?? cable.url
      await act()
      return openTab(profile, url)
    },
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

/** Resolves once a page has said that its answer was not the one that counts. It may say so briefly, so each change is looked at. */
const toldLate = ({ page }: ChatPage) =>
  page.evaluate(
    () =>
      new Promise<void>((resolve) => {
        const said = /This was answered before, perhaps in another tab|Another answer was first/
        const look = () => {
          if (said.test(document.body.textContent)) resolve()
        }
        new MutationObserver(look).observe(document.body, {
          subtree: true,
          childList: true,
          characterData: true,
        })
        look()
      }),
  )

test('two tabs show the same request and approve it at once: it runs once, and both show it', async () => {
  for (const [round, delay] of delays(1, 2, 60).entries()) {
    const { open, mails } = await begin()
    const first = await open()
    await first.send(mailing)
    await first.request(mailTo).waitFor()
    await first.settled()
    const second = await open(first)
    await second.request(mailTo).waitFor()
    if (round === 0) await second.screenshot('tabs-second')
    // The second hears of nothing while the first answers.
    const { click } = await busyBeforeClick(second, 'Approve once')
    await approveOnce(first.request(mailTo))
    await sleep(delay)
    await click()
    for (const tab of [first, second]) {
      await isDone(tab)
      await tab.settled()
      expect(await tab.cards('send_email').count()).toBe(1)
    }
    expect(await mails()).toHaveLength(1)
  }
})

test('E.10 two tabs answer differently: the first wins, the second is told', async () => {
  for (const [round, delay] of delays(2, 4, 80).entries()) {
    const { open, mails } = await begin()
    const yes = await open()
    await yes.send(mailing)
    await yes.request(mailTo).waitFor()
    await yes.settled()
    const no = await open(yes)
    await no.request(mailTo).waitFor()
    await no.request(mailTo).getByRole('button', { name: 'Deny with a reason…' }).click()
    // Waited for from here on: what the server says later replaces it.
    const told = [yes, no].map((tab) => toldLate(tab).then(() => tab))
    for (const one of told) one.catch(() => {})
    const clicks = [await busyBeforeClick(yes, 'Approve once'), await busyBeforeClick(no, 'Deny')]
    if (round % 3 !== 0) clicks.reverse()
    const [sooner, later] = clicks.map(({ click }) => click)
    await Promise.all([sooner?.(), sleep(round < 2 ? 0 : delay).then(later)])
    const approved = (await Promise.race(told)) === no
    for (const tab of [yes, no]) {
      await tab
        .cards('send_email')
        .filter({ hasText: approved ? 'Done' : 'Denied' })
        .waitFor()
      await tab.settled()
    }
    expect(await mails()).toHaveLength(approved ? 1 : 0)
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

fullTest(
  'an answer that was not sent is told of after a reload, and goes out when the person says so',
  async () => {
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
  },
)

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
    const back = await open(chat, () => chat.page.close())
    wire.release()
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

fullTest(
  'a tab closes during the continuation of its answer while another is open: the other shows the outcome',
  async () => {
    for (const place of ['the click', ...places]) {
      const { open, mails, during, wire } = await begin()
      const first = await open()
      await first.send(mailing)
      await first.request(mailTo).waitFor()
      await first.settled()
      const second = await open(first)
      await second.request(mailTo).waitFor()
      const approving = () => approveOnce(first.request(mailTo))
      await (place === 'the click' ? approving() : during(place, approving))
      await first.page.close()
      wire.release()
      await finishUp(second)
      expect(await mails(), `closed after ${place}`).toHaveLength(1)
      expect(await second.cards('send_email').count()).toBe(1)
      await second.send('hello')
      await second.page.locator('.prose').filter({ hasText: 'Ask for something' }).waitFor()
      expect(second.complaints).toEqual([])
    }
  },
)

test('offline before an answer is sent: the page says so, and retry sends it once', async () => {
  const { open, mails, wire } = await begin()
  const chat = await open()
  await chat.send(mailing)
  await chat.request(mailTo).waitFor()
  await chat.settled()
  wire.cut()
  await approveOnce(chat.request(mailTo))
  await chat.page.getByRole('alert').waitFor()
  await chat.screenshot('offline')
  await chat.page.getByRole('button', { name: 'Retry' }).first().click()
  await chat.page.getByRole('alert').waitFor()
  wire.mend()
  await chat.page.getByRole('button', { name: 'Retry' }).first().click()
  await isDone(chat)
  await chat.settled()
  expect(await chat.page.getByRole('alert').count()).toBe(0)
  expect(await mails()).toHaveLength(1)
  expect(await chat.cards('send_email').count()).toBe(1)
})

fullTest('offline during a continuation: the page reconnects by itself, and the tool ran once', async () => {
  for (const place of places) {
    const { open, mails, during, wire } = await begin()
    const chat = await open()
    await chat.send(mailing)
    await chat.request(mailTo).waitFor()
    await chat.settled()
    await during(place, () => approveOnce(chat.request(mailTo)))
    wire.cut()
    wire.release()
    const lost = chat.page.getByText('The connection was lost', { exact: true })
    // A page that had not heard of its run when the connection broke does not know what to rejoin.
    const retry = chat.page.getByRole('button', { name: 'Retry' })
    await lost.or(retry).first().waitFor()
    wire.mend()
    if ((await retry.count()) > 0) await retry.first().click()
    await isDone(chat)
    await chat.settled()
    expect(await chat.page.getByRole('alert').count()).toBe(0)
    expect(await mails(), `offline after ${place}`).toHaveLength(1)
    expect(await chat.cards('send_email').count()).toBe(1)
  }
})
