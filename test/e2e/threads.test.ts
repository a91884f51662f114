import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { full } from '../full.js'
import { type ChatPage, launchBrowser, openChat, openTab, type PageName, startDemo } from './demo.js'
import { lastBeforeWait, startHeldServer, story } from './held-server.js'
import { approve } from './page-script/bench.js'

// Conversations that live on the server: reloads, other browsers, another day.

const HOUR = 60 * 60 * 1000

let browser: Browser

beforeAll(async () => {
  browser = await launchBrowser()
})
afterAll(() => browser.close())

const says = (chat: ChatPage, text: string) =>
  chat.page.locator('.prose').filter({ hasText: text }).last().waitFor()
const isDone = (chat: ChatPage, count = 1) =>
  chat
    .cards('delete_file')
    .filter({ hasText: 'Done' })
    .nth(count - 1)
    .waitFor()
const stopButton = (chat: ChatPage) => chat.page.getByRole('button', { name: 'Stop' })

const pages: readonly PageName[] = full ? ['react', 'vue', 'svelte', 'solid'] : ['react']

describe.each(pages)('the page in %s', (name) => {
  /** A page in a browser of its own, on a server whose model waits in the middle of a reply. */
  async function open() {
    const server = await startHeldServer(name)
    onTestFinished(() => server.close())
    const visit = async (url: string) => {
      const chat = await openChat(browser, url)
      onTestFinished(() => chat.page.context().close())
      return chat
    }
    const chat = await visit(server.url)
    return { server, chat, visit, has: (path: string) => existsSync(join(server.folder, path)) }
  }

  test('F42 T12 a reload in mid-stream: the text is complete, nothing is repeated, and Stop still works', async () => {
    const { server, chat } = await open()
    await chat.send('tell')
    await says(chat, lastBeforeWait)
    await chat.page.reload()
    await says(chat, lastBeforeWait)
    await stopButton(chat).waitFor()
    server.goOn()
    await chat.settled()
    expect((await chat.answers()).trim()).toBe(story)
    expect(await chat.page.locator('.user-text').allInnerTexts()).toEqual(['tell'])

    await chat.send('tell')
    await expect.poll(() => chat.page.locator('.prose').count()).toBe(2)
    await says(chat, lastBeforeWait)
    await chat.page.reload()
    await says(chat, lastBeforeWait)
    await stopButton(chat).click()
    await chat.settled()
    await expect.poll(() => server.stopped()).toBe(1)
    await chat.page.reload()
    await chat.settled()
    expect((await chat.answers()).trim()).toMatch(new RegExp(`${lastBeforeWait}$`))
    expect(chat.complaints).toEqual([])
  })

  test('T13 a reload with an approval pending, and with an answer that was not sent yet', async () => {
    const { server, chat, has } = await open()
    server.goOn()
    await chat.send('tell, delete notes.txt todo.md')
    await chat.request('todo.md').waitFor()
    await chat.settled()
    await chat.page.reload()
    await chat.request('todo.md').waitFor()
    await approve(chat.request('notes.txt'))
    const waiting = chat.cards().filter({ hasText: 'Approved, not sent yet' })
    await waiting.waitFor()
    await chat.page.reload()
    await waiting.waitFor()
    await chat.page.getByText('One request is waiting for you').waitFor()
    expect([chat.requests(), has('notes.txt')]).toEqual([1, true])

    await chat.page.route('**/api/chat', (route) => route.abort('connectionrefused'), { times: 1 })
    await approve(chat.request('todo.md'))
    await chat.page.getByRole('alert').getByText('The server could not be reached').waitFor()
    await chat.page.reload()
    await chat.page.getByText('Your answer has not been sent').waitFor()
    expect([has('notes.txt'), has('todo.md')]).toEqual([true, true])
    await chat.page.getByRole('button', { name: 'Send it' }).click()
    await says(chat, 'Finished.')
    await isDone(chat, 2)
    expect([has('notes.txt'), has('todo.md')]).toEqual([false, false])
    expect(chat.complaints.filter((text) => !text.includes('ERR_CONNECTION_REFUSED'))).toEqual([])
  })

  test('T14 a second browser sees the same run live and answers, and both show the outcome', async () => {
    const { server, chat, visit, has } = await open()
    await chat.send('tell, delete notes.txt')
    await says(chat, lastBeforeWait)
    const other = await visit(chat.page.url())
    await says(other, lastBeforeWait)
    await stopButton(other).waitFor()
    server.goOn()
    for (const page of [chat, other]) await page.request('notes.txt').waitFor()
    await other.settled()
    expect((await other.answers()).trim()).toBe(story)
    await approve(other.request('notes.txt'))
    for (const page of [other, chat]) {
      await says(page, 'Finished.')
      await isDone(page)
      await page.settled()
      expect(await page.cards().count()).toBe(1)
    }
    await chat.page.reload()
    for (const page of [other, chat]) await page.page.getByText('You approved this').waitFor()
    expect(has('notes.txt')).toBe(false)
    expect([...chat.complaints, ...other.complaints]).toEqual([])
  })

  test('T15 the next day, after a restart: a pending approval is there, a day later it has expired and is shown as such', async () => {
    const parent = await mkdtemp(join(tmpdir(), 'countersign-days-'))
    onTestFinished(() => rm(parent, { recursive: true }))
    const first = await startDemo(name, { parent })
    const has = (path: string) => existsSync(join(first.folder, path))
    const asked: string[] = []
    for (const file of ['notes.txt', 'todo.md']) {
      const chat = await openChat(browser, first.url)
      await chat.send(`delete ${file}`)
      await chat.request(file).waitFor()
      await chat.settled()
      asked.push(new URL(chat.page.url()).search)
      await chat.page.context().close()
    }
    await first.kill()

    /** The conversation in another browser, with the server and the browser on a later day. */
    const later = async (hours: number, search = '') => {
      const server = await startDemo(name, { parent, later: hours * HOUR })
      onTestFinished(() => server.close())
      const context = await browser.newContext()
      onTestFinished(() => context.close())
      await context.clock.setFixedTime(Date.now() + hours * HOUR)
      return { server, chat: await openTab(context, `${server.url}/${search}`) }
    }
    const { chat, server } = await later(23, asked[0])
    await chat.page.getByRole('link', { name: 'delete todo.md' }).waitFor()
    await approve(chat.request('notes.txt'))
    await isDone(chat)
    expect(has('notes.txt')).toBe(false)
    await chat.page.context().close()
    await server.kill()

    const { chat: late } = await later(25, asked[1])
    await late.cards('delete_file').filter({ hasText: 'Expired' }).waitFor()
    expect(await late.page.locator('.pending-bar').count()).toBe(0)
    await late.send('hello')
    await says(late, 'Ask for something')
    expect(has('todo.md')).toBe(true)
    expect([...chat.complaints, ...late.complaints]).toEqual([])
  })
})
