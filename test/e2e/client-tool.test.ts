import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import {
  createAgent,
  type ModelEvent,
  memoryLedger,
  memoryRunLog,
  memoryThreads,
  scriptedModel,
} from '@countersign/server'
import { toNodeHandler } from '@countersign/server/node'
import { expect, onTestFinished, test } from 'vitest'
import { bundleForPage } from '../../scripts/bundle.mjs'
import type { ToolPage } from './client-tool/page.js'
import { locate } from './client-tool/tool.js'
import { launchBrowser } from './demo.js'

const call: ModelEvent[] = [
  { type: 'tool-call', id: 'c1', name: 'locate', arguments: '{}' },
  { type: 'finish', reason: 'tool_calls' },
]
const said = (text: string): ModelEvent[] => [
  { type: 'text-delta', delta: text },
  { type: 'finish', reason: 'stop' },
]

/** A server with one client tool, and a page of it in Chromium. */
async function open() {
  const agent = createAgent({
    model: scriptedModel(({ messages }) => (messages.at(-1)?.role === 'tool' ? said('I see.') : call)),
    tools: [locate.client(() => '')],
    threads: memoryThreads(),
    runLog: memoryRunLog(),
    approvals: { secret: 'only for this test, 32 bytes long!', ledger: memoryLedger() },
  })
  const chat = toNodeHandler(agent, { context: () => ({ subject: 'ann' }), goOnFor: 20_000 })
  const script = await bundleForPage(join(import.meta.dirname, 'client-tool/page.ts'))
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost')
    if (pathname === '/chat') return void chat(request, response)
    const isScript = pathname === '/page.js'
    response.setHeader('content-type', `${isScript ? 'text/javascript' : 'text/html'}; charset=utf-8`)
    response.end(
      isScript ? script : '<!doctype html><title>Test</title><pre></pre><script src="/page.js"></script>',
    )
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const browser = await launchBrowser()
  onTestFinished(async () => {
    await browser.close()
    server.closeAllConnections()
    server.close()
  })
  const page = await browser.newPage()
  const load = () => page.goto(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)
  await load()
  const shows = (...lines: string[]) =>
    page.waitForFunction((text) => document.querySelector('pre')?.textContent === text, lines.join('\n'))
  const act = (name: keyof ToolPage) => page.evaluate((one) => globalThis.toolPage[one](), name)
  return { act, load, shows, runs: () => page.evaluate(() => localStorage.runs) }
}

test('T13 a reload during a client tool: the call counts as interrupted, it does not run again, and retry() goes on', async () => {
  const { act, load, shows, runs } = await open()
  await act('send')
  await expect.poll(runs).toBe('1')
  await load()
  await shows('Where am I?', 'locate interrupted', 'tool-result', 'ready')
  await act('retry')
  await shows('Where am I?', 'locate interrupted', 'tool-result', 'I see.', 'ready')
  expect(await runs()).toBe('1')
  await load()
  await shows('Where am I?', 'locate interrupted', 'tool-result', 'I see.', 'ready')
})
