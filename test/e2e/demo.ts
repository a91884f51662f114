import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  type Browser,
  type BrowserContext,
  type BrowserContextOptions,
  chromium,
  type Locator,
  type Page,
} from 'playwright-core'
import { fillOnce } from '../../examples/server/src/samples.js'
import { findChromium } from '../../scripts/chromium.mjs'

const root = join(import.meta.dirname, '../..')
const serverFile = join(root, 'examples/server/dist/main.js')
const screenshots = join(import.meta.dirname, 'screenshots')

export interface DemoServer {
  url: string
  /** The folder with the files, new for this server. */
  folder: string
  close(): Promise<void>
  /** Ends it as `kill -9` does. */
  kill(): Promise<void>
}

/**
 * The server of one test file: `open()` gives the one that runs already, or starts it, with the files as they are in the beginning.
 * Whatever else it keeps belongs to the threads of other tests. Its model does not pause between two words; where a test wants to be in the
 * middle of an answer, a `Wire` holds it there.
 */
export function demoServer(page: PageName = 'react') {
  let starting: Promise<DemoServer> | undefined
  return {
    async open(): Promise<DemoServer> {
      starting ??= startDemo(page)
      const server = await starting
      for (const name of await readdir(server.folder))
        await rm(join(server.folder, name), { recursive: true })
      await fillOnce(server.folder, Date.now())
      return server
    },
    async close(): Promise<void> {
      await (await starting)?.close()
    },
  }
}

/** The example pages, one for each framework. */
export type PageName = 'react' | 'solid' | 'vue' | 'svelte'

/** A module for `node --import` that sets the clock of its process forward. */
const laterBy = (ms: number) => `data:text/javascript,const now = Date.now; Date.now = () => now() + ${ms}`

interface DemoOptions {
  /** A folder that an earlier server has used. Default: a new one, which is removed when the server is closed. */
  parent?: string
  /** By how many milliseconds the clock of the server is ahead. */
  later?: number
}

/** Starts the built example server on a free port, with a folder of its own and the page of one framework. */
export async function startDemo(page: PageName, options: DemoOptions = {}): Promise<DemoServer> {
  if (!existsSync(serverFile))
    throw new Error('The example server is not built. Run `npm test`, or build the workspace first.')
  const parent = options.parent ?? (await mkdtemp(join(tmpdir(), 'countersign-demo-')))
  const folder = join(parent, 'workspace')
  const demo = {
    PORT: '0',
    DEMO_DIR: folder,
    DEMO_DELAY: '0',
    DEMO_PAGE: page,
    DEMO_MODEL: 'planner',
  }
  const env = { ...process.env, ...demo }
  const clock = options.later === undefined ? [] : ['--import', laterBy(options.later)]
  const child = spawn(process.execPath, [...clock, serverFile], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
  const url = await new Promise<string>((resolve, reject) => {
    let output = ''
    const read = (chunk: unknown) => {
      output += chunk
      const found = /http:\/\/localhost:\d+/.exec(output)
      if (found) resolve(found[0])
    }
    child.stdout.on('data', read)
    child.stderr.on('data', read)
    child.once('exit', (code) => reject(new Error(`The example server ended with ${code}:\n${output}`)))
  })
  return {
    url,
    folder,
    close: async () => {
      child.kill()
      await ended
      if (options.parent === undefined) await rm(parent, { recursive: true })
    },
    kill: async () => {
      child.kill('SIGKILL')
      await ended
    },
  }
}

/** Milliseconds. Waits end by what happens on the page; this only ends what hangs, also on a machine that is busy with other work. */
export const waitLimit = 300_000

export function launchBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: findChromium(),
    headless: true,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      // the address bar's lists are pages of their own: with each window they cost more than the page under test
      '--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup',
    ],
  })
}

/** A page as a person uses it, with what it logged and how often it asked the server. */
export interface ChatPage {
  page: Page
  /** Errors and warnings of the console, and uncaught errors. */
  complaints: string[]
  /** How many chat requests were sent. */
  requests(): number
  send(text: string): Promise<void>
  /** The cards of calls of one tool, or of all, in order. */
  cards(tool?: string): Locator
  /** The card of a pending request whose arguments contain a text. */
  request(text: string): Locator
  /** Waits until nothing runs. */
  settled(): Promise<void>
  /** What the assistant has said, all of it. */
  answers(): Promise<string>
  screenshot(name: string): Promise<void>
}

export async function openChat(
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
): Promise<ChatPage> {
  const context = await browser.newContext({
    viewport: { width: 1100, height: 900 },
    reducedMotion: 'reduce',
    ...options,
  })
  return openTab(context, url)
}

/** One more tab of the same browser: it shares what the browser keeps. */
export async function openTab(context: BrowserContext, url: string): Promise<ChatPage> {
  const page = await context.newPage()
  page.setDefaultTimeout(waitLimit)
  const complaints: string[] = []
  let requests = 0
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(String(error)))
  page.on('request', (request) => {
    if (request.url().endsWith('/api/chat')) requests += 1
  })
  await page.goto(url)
  const cards = (tool = '') =>
    page.locator('.tool').filter({ has: page.locator('.tool-name', { hasText: tool }) })
  return {
    page,
    complaints,
    requests: () => requests,
    send: async (text) => {
      await page.getByRole('textbox', { name: 'Message' }).fill(text)
      await page.keyboard.press('Enter')
    },
    cards,
    request: (text) => page.locator('.tool[data-state="approval-requested"]').filter({ hasText: text }),
    settled: () => page.locator('.thread[aria-busy="false"]').waitFor(),
    answers: async () => (await page.locator('.prose').allInnerTexts()).join('\n'),
    screenshot: async (name) => {
      await mkdir(screenshots, { recursive: true })
      await page.screenshot({ path: join(screenshots, `${name}.png`) })
    },
  }
}
