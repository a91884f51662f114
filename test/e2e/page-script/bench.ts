import { existsSync } from 'node:fs'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Browser, BrowserContextOptions, Locator } from 'playwright-core'
import { afterAll, afterEach, beforeAll, test } from 'vitest'
import { type ChatPage, demoServer, launchBrowser, openChat, openTab, type PageName } from '../demo.js'
import { startWire, type Wire } from '../wire.js'

/** A page on a fresh server, with a look at the files that the tools work on. */
export interface Demo extends ChatPage {
  readonly name: PageName
  has(path: string): boolean
  read(path: string): Promise<string>
  list(path: string): Promise<string[]>
  /** Changes a file behind the back of the page and of the server. */
  change(path: string, content: string): Promise<void>
  /** What lies between the page and its server. */
  wire: Wire
  /** One more tab of the same browser, with the same conversation. */
  openTab(): Promise<ChatPage>
}

export interface Bench {
  spec(sentence: string, run: () => Promise<void>): void
  /** Fresh files, and a page in a fresh browser profile. */
  open(options?: BrowserContextOptions): Promise<Demo>
}

/** What the script needs to drive the page of one framework: it takes the specs that one of `chosen` matches. */
export function pageBench(name: PageName, chosen: readonly RegExp[]): Bench & { end(): void } {
  const unused = new Set(chosen)
  let browser: Browser
  const server = demoServer(name)
  let chat: ChatPage | undefined
  let wire: Wire | undefined

  beforeAll(async () => {
    browser = await launchBrowser()
  })
  afterAll(async () => {
    await browser?.close()
    await server.close()
    console.info(`${name}: screenshots are in test/e2e/screenshots/${name}-*.png`)
  })
  afterEach(async () => {
    await chat?.page.context().close()
    await wire?.close()
    chat = undefined
    wire = undefined
  })

  async function visit(url: string, options: BrowserContextOptions): Promise<ChatPage> {
    chat = await openChat(browser, url, options)
    return chat
  }

  return {
    spec(sentence, run) {
      const matching = chosen.filter((words) => words.test(sentence))
      for (const words of matching) unused.delete(words)
      if (matching.length > 0) test(`${sentence} (${name})`, run)
    },
    /** Throws where a spec that was chosen has another name now. */
    end() {
      if (unused.size > 0) throw new Error(`No spec matches ${[...unused].join(', ')}.`)
    },
    async open(options = {}) {
      const { url: target, folder } = await server.open()
      const between = await startWire(target)
      wire = between
      const { url } = between
      const opened = await visit(url, options)
      return {
        ...opened,
        name,
        wire: between,
        has: (path) => existsSync(join(folder, path)),
        read: (path) => readFile(join(folder, path), 'utf8'),
        list: (path) => readdir(join(folder, path)),
        change: (path, content) => writeFile(join(folder, path), content),
        openTab: () => openTab(opened.page.context(), opened.page.url()),
        screenshot: (view) => opened.screenshot(`${name}-${view}`),
      }
    },
  }
}

export const approve = (card: Locator) => card.getByRole('button', { name: 'Approve once' }).click()

export async function deny(card: Locator, reason: string): Promise<void> {
  await card.getByRole('button', { name: 'Deny with a reason…' }).click()
  await card.getByRole('textbox', { name: 'Reason' }).fill(reason)
  await card.getByRole('button', { name: 'Deny', exact: true }).click()
}
