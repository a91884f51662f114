import { createServer, type Server } from 'node:http'
import { join } from 'node:path'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { build } from 'vite'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { describeRecordStore } from '../../packages/testing/src/suites/persistence.js'
import { launchBrowser } from '../e2e/demo.js'
import type { StoreName } from './persistence-page.js'

const root = join(import.meta.dirname, '../..')

let server: Server
let browser: Browser
let context: BrowserContext
let page: Page
let origin: string
const complaints: string[] = []

async function bundle(): Promise<string> {
  const output = await build({
    root,
    configFile: false,
    logLevel: 'error',
    resolve: {
      alias: {
        '@countersign/core/ag-ui': join(root, 'packages/core/src/ag-ui.ts'),
        '@countersign/core': join(root, 'packages/core/src/index.ts'),
      },
    },
    build: {
      write: false,
      minify: false,
      lib: { entry: join(import.meta.dirname, 'persistence-page.ts'), formats: ['iife'], name: 'page' },
    },
  })
  const [result] = Array.isArray(output) ? output : [output]
  if (!result || !('output' in result)) throw new Error('The bundler is watching instead of building')
  return result.output[0].code
}

async function openPage(): Promise<Page> {
  const opened = await context.newPage()
  opened.on('pageerror', (error) => complaints.push(String(error)))
  const devtools = await context.newCDPSession(opened)
  await opened.exposeFunction('limitStorage', (quotaSize: number) =>
    devtools.send('Storage.overrideQuotaForOrigin', { origin, quotaSize }),
  )
  await opened.goto(origin)
  return opened
}

beforeAll(async () => {
  const script = await bundle()
  server = createServer((request, response) => {
    const isScript = request.url === '/page.js'
    response.setHeader('Content-Type', `${isScript ? 'text/javascript' : 'text/html'}; charset=utf-8`)
    response.end(isScript ? script : '<!doctype html><script src="/page.js"></script>')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('No port')
  origin = `http://127.0.0.1:${address.port}`
  browser = await launchBrowser()
  context = await browser.newContext()
  page = await openPage()
})

afterAll(async () => {
  await browser?.close()
  server?.close()
})

for (const store of ['localStorage', 'IndexedDB'] as const satisfies StoreName[]) {
  const inPage = {
    // the names are those of the page, where the cases run
    test: (name: string) => test(name, () => page.evaluate((each) => persistencePage.run(each), name)),
    expect,
  }
  const never = () => {
    throw new Error('This runs in the page')
  }
  describeRecordStore(store, never, inPage)

  test(`a record outlives its page and is seen by the next one (${store})`, async () => {
    await page.evaluate((name) => persistencePage.save(name, 'reloaded'), store)
    await page.reload()
    expect(await page.evaluate((name) => persistencePage.loads(name, 'reloaded'), store)).toBe(true)
    const other = await openPage()
    expect(await other.evaluate((name) => persistencePage.loads(name, 'reloaded'), store)).toBe(true)
    await other.close()
  })

  test(`where the browser blocks storage every action says so (${store})`, async () => {
    const [frame] = await Promise.all([
      page.waitForEvent('framenavigated', (navigated) => navigated.url().endsWith('/blocked')),
      page.evaluate(() => {
        const element = document.createElement('iframe')
        element.setAttribute('sandbox', 'allow-scripts')
        element.src = '/blocked'
        document.body.append(element)
      }),
    ])
    await frame.waitForFunction(() => 'persistencePage' in globalThis)
    expect(await frame.evaluate((name) => persistencePage.codes(name), store)).toEqual([
      'persistence-unavailable',
      'persistence-unavailable',
      'persistence-unavailable',
    ])
  })
}

test('no rejection in the page went unhandled', () => {
  expect(complaints).toEqual([])
})
