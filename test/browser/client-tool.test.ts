import { createServer, type IncomingMessage, type Server } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { RunAgentInput } from '@countersign/core'
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { build } from 'vite'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { launchBrowser, waitLimit } from '../e2e/demo.js'
import { full } from '../full.js'

const root = join(import.meta.dirname, '../..')

let server: Server
let browser: Browser
let origin: string
/** How often the tool ran, counted here. */
let ran = 0

beforeAll(async () => {
  const script = await bundle()
  server = createServer(async (request, response) => {
    if (request.url === '/ran') {
      ran++
      await sleep(60)
      response.end('rung')
    } else if (request.url === '/chat') {
      const input = JSON.parse(await bodyOf(request)) as RunAgentInput
      response.setHeader('Content-Type', 'text/event-stream')
      for (const event of answer(input)) {
        response.write(`data: ${JSON.stringify(event)}\n\n`)
        await sleep(15)
      }
      response.end()
    } else {
      const isScript = request.url === '/page.js'
      response.setHeader('Content-Type', `${isScript ? 'text/javascript' : 'text/html'}; charset=utf-8`)
      response.end(isScript ? script : '<!doctype html><script src="/page.js"></script>')
    }
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('No port')
  origin = `http://localhost:${address.port}`
  browser = await launchBrowser()
})

afterAll(async () => {
  await browser?.close()
  server?.close()
})

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
      lib: { entry: join(import.meta.dirname, 'client-tool-page.ts'), formats: ['iife'], name: 'page' },
    },
  })
  const [result] = Array.isArray(output) ? output : [output]
  if (!result || !('output' in result)) throw new Error('The bundler is watching instead of building')
  return result.output[0].code
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let body = ''
  for await (const chunk of request) body += chunk
  return body
}

/** A server that hands the tool out as often as it is asked, so that only the client can see to it that it runs once. */
function* answer({ threadId, runId, messages, resume = [] }: RunAgentInput) {
  yield { type: 'RUN_STARTED', threadId, runId }
  const isApproved = resume.length > 0 || JSON.stringify(messages).includes('"approved":true')
  if (messages.some(({ role }) => role === 'tool')) {
    yield { type: 'TEXT_MESSAGE_START', messageId: runId, role: 'assistant' }
    yield { type: 'TEXT_MESSAGE_CONTENT', messageId: runId, delta: 'Done.' }
    yield { type: 'TEXT_MESSAGE_END', messageId: runId }
  } else if (isApproved) {
    const value = { toolCallId: 'c1', toolName: 'ring', input: {} }
    yield { type: 'CUSTOM', name: 'client-tool-ready', value }
  } else {
    yield { type: 'TOOL_CALL_START', toolCallId: 'c1', toolCallName: 'ring', parentMessageId: 'm1' }
    yield { type: 'TOOL_CALL_ARGS', toolCallId: 'c1', delta: '{}' }
    yield { type: 'TOOL_CALL_END', toolCallId: 'c1' }
    const approval = { id: 'a1', needsApproval: true, options: ['deny', 'once'] }
    const value = { toolCallId: 'c1', toolName: 'ring', input: {}, approval }
    yield { type: 'CUSTOM', name: 'approval-requested', value }
  }
  yield { type: 'RUN_FINISHED', threadId, runId }
}

async function openPage(context: BrowserContext): Promise<Page> {
  const page = await context.newPage()
  page.setDefaultTimeout(waitLimit)
  await page.goto(origin)
  return page
}

const answerIt = (page: Page) =>
  page.evaluate(() => void chat.addToolApprovalResponse({ id: 'a1', approved: true }))

const callIn = (page: Page) =>
  page.evaluate(() => {
    const parts = chat.getSnapshot().messages.flatMap((message) => message.parts)
    return parts.find((part) => part.type === 'tool-call')?.state
  })

const isSettled = (page: Page) =>
  page.waitForFunction(() => {
    const { isLoading, messages } = chat.getSnapshot()
    const text = messages.flatMap(({ parts }) => parts).findLast((part) => part.type === 'text')
    return !isLoading && text?.type === 'text' && text.text === 'Done.'
  })

async function ask(context: BrowserContext): Promise<Page> {
  ran = 0
  const page = await openPage(context)
  await page.evaluate(() => void chat.sendMessage('ring'))
  await page.waitForFunction(() => chat.getSnapshot().pendingApprovals.length === 1)
  await page.waitForFunction(() => !chat.getSnapshot().isLoading)
  return page
}

test('E.11 an approved client tool runs in the browser once, with two tabs open', async () => {
  const context = await browser.newContext()
  const first = await ask(context)
  const second = await openPage(context)
  await second.waitForFunction(() => chat.getSnapshot().pendingApprovals.length === 1)
  await answerIt(second)
  await answerIt(first)
  for (const page of [first, second]) await isSettled(page)
  expect([await callIn(first), await callIn(second)]).toEqual(['complete', 'complete'])
  expect(ran).toBe(1)
  await context.close()
})

test('E.11 an approved client tool runs at most once over a reload at any time', async () => {
  const ends: (string | undefined)[] = []
  for (const delay of full ? [0, 10, 25, 40, 55, 70, 90, 120, 160, 220] : [0, 40, 160]) {
    const context = await browser.newContext()
    const page = await ask(context)
    await answerIt(page)
    await sleep(delay)
    await page.reload()
    await page.waitForFunction(() => chat.getSnapshot().messages.length > 0)
    const before = ran
    await sleep(120)
    expect(ran, 'nothing runs because it was loaded').toBe(before)
    if (await page.evaluate(() => chat.getSnapshot().pendingApprovals.length === 1)) await answerIt(page)
    else await page.evaluate(() => chat.retry())
    await isSettled(page)
    ends.push(`${await callIn(page)} (${ran})`)
    expect(ran, `reloaded after ${delay} ms`).toBeLessThanOrEqual(1)
    await context.close()
  }
  console.log(`the call ended (and ran): ${ends.join(', ')}`)
})

test('E.11 an approved client tool runs at most once when its tab closes and another takes over', async () => {
  for (const delay of full ? [0, 20, 40, 60, 80, 120] : [0, 60]) {
    const context = await browser.newContext()
    const first = await ask(context)
    const second = await openPage(context)
    await second.waitForFunction(() => chat.getSnapshot().pendingApprovals.length === 1)
    await answerIt(second)
    await sleep(delay)
    await first.close()
    await sleep(120)
    await second.evaluate(async () => {
      await chat.retry()
      await chat.retry()
    })
    await isSettled(second)
    expect(ran, `closed after ${delay} ms`).toBeLessThanOrEqual(1)
    await context.close()
  }
})
