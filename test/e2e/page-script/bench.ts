import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Browser, BrowserContextOptions, Locator } from 'playwright-core'
import { afterAll, afterEach, beforeAll, test } from 'vitest'
import {
  type ChatPage,
  type DemoServer,
  launchBrowser,
  openChat,
  openTab,
  type PageName,
  startDemo,
} from '../demo.js'

/** A page on a fresh server, with a look at the files that the tools work on. */
export interface Demo extends ChatPage {
  has(path: string): boolean
  read(path: string): Promise<string>
  list(path: string): Promise<string[]>
  /** One more tab of the same browser. */
  openTab(): Promise<ChatPage>
}

export interface Bench {
  spec(sentence: string, run: () => Promise<void>): void
  /** A fresh server with fresh files, and a page on it. `delay` is the pause between two words in milliseconds. */
  open(delay?: number, options?: BrowserContextOptions): Promise<Demo>
}

/** What the script needs to drive the page of one framework. Call it at the top of a test file. */
export function pageBench(name: PageName): Bench {
  let browser: Browser
  let server: DemoServer | undefined
  let chat: ChatPage | undefined

  beforeAll(async () => {
    browser = await launchBrowser()
  })
  afterAll(async () => {
    await browser?.close()
    console.info(`${name}: screenshots are in test/e2e/screenshots/${name}-*.png`)
  })
  afterEach(async () => {
    await chat?.page.context().close()
    await server?.close()
    chat = undefined
    server = undefined
  })

  async function start(delay: number): Promise<DemoServer> {
    server = await startDemo(delay, name)
    return server
  }
  async function visit(url: string, options: BrowserContextOptions): Promise<ChatPage> {
    chat = await openChat(browser, url, options)
    return chat
  }

  return {
    spec: (sentence, run) => test(`${sentence} (${name})`, run),
    async open(delay = 0, options = {}) {
      const { url, folder } = await start(delay)
      const opened = await visit(url, options)
      return {
        ...opened,
        has: (path) => existsSync(join(folder, path)),
        read: (path) => readFile(join(folder, path), 'utf8'),
        list: (path) => readdir(join(folder, path)),
        openTab: () => openTab(opened.page.context(), url),
        screenshot: (view) => opened.screenshot(`${name}-${view}`),
      }
    },
  }
}

export const approve = (card: Locator) => card.getByRole('button', { name: 'Approve once' }).click()

export async function deny(card: Locator, reason: string): Promise<void> {
  await card.getByRole('button', { name: 'Deny…' }).click()
  await card.getByLabel('Why not?').fill(reason)
  await card.getByRole('button', { name: 'Deny', exact: true }).click()
}
