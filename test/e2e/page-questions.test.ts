import type { IncomingMessage } from 'node:http'
import type { Interrupt, ResumeEntry, RunAgentInput } from '@countersign/core'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { full } from '../full.js'
import { launchBrowser, openChat, type PageName } from './demo.js'
import { type ChatHandler, pageOnOtherServer } from './other-server.js'

/** The one line that the page changes. */
const connection = `
import { indexedDb } from '@countersign/client/indexed-db'
import { fetchServerSentEvents } from '@countersign/client'
export const server = { connection: fetchServerSentEvents('/api/chat'), persistence: indexedDb() }
`

const folder: Interrupt = {
  id: 'q1',
  reason: 'input_required',
  message: 'Where shall the old logs go?',
  subagentRunId: 's1',
  responseSchema: {
    type: 'object',
    properties: {
      folder: {
        type: 'string',
        title: 'Folder',
        minLength: 2,
        description: 'A name \u202e<img src=x onerror="document.title=\'broken\'">',
      },
      depth: { type: 'integer', title: 'Depth', minimum: 0, maximum: 9, default: 2 },
      how: { type: 'string', title: 'How', enum: ['copy', 'move'] },
      mail: { type: 'string', title: 'Report to', format: 'email' },
      keep: { type: 'boolean', title: 'Keep empty folders', description: 'They stay as they are.' },
      tags: { type: 'array', title: 'Tags', items: { type: 'string' } },
    },
    required: ['folder', 'how'],
    additionalProperties: false,
  },
}

const sure: Interrupt = { id: 'q2', reason: 'input_required', message: 'Anything else?' }

type Run = readonly object[]

const planner = { type: 'SUBAGENT_STARTED', subagentRunId: 's1', name: 'Planner' }
const mailer = { type: 'SUBAGENT_STARTED', subagentRunId: 's2', name: 'Mailer', parentSubagentRunId: 's1' }
const says = (messageId: string, delta: string): Run => [
  { type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' },
  { type: 'TEXT_MESSAGE_CONTENT', messageId, delta },
  { type: 'TEXT_MESSAGE_END', messageId },
]
const suspended = (...ids: string[]): Run =>
  ids.map((subagentRunId) => ({ type: 'SUBAGENT_FINISHED', subagentRunId, outcome: { type: 'suspended' } }))
const asks = (...interrupts: Interrupt[]) => ({ outcome: { type: 'interrupt', interrupts } })

const runs: readonly { readonly events: Run; readonly end?: object }[] = [
  { events: [...says('m1', 'I look at the logs.'), planner, ...suspended('s1')], end: asks(folder) },
  {
    events: [
      planner,
      mailer,
      { type: 'TOOL_CALL_START', toolCallId: 'c1', toolCallName: 'send_mail', subagentRunId: 's2' },
      { type: 'TOOL_CALL_ARGS', toolCallId: 'c1', delta: '{"to":"ada@example.org"}', subagentRunId: 's2' },
      { type: 'TOOL_CALL_END', toolCallId: 'c1', subagentRunId: 's2' },
      ...suspended('s2', 's1'),
    ],
    end: asks({ id: 'a1', reason: 'tool_call', toolCallId: 'c1', subagentRunId: 's2' }),
  },
  {
    events: [{ type: 'TOOL_CALL_RESULT', messageId: 't1', toolCallId: 'c1', content: 'sent' }],
    end: asks(sure),
  },
  { events: says('m2', 'All is done.') },
]

/** An agent that plays its runs in order, and keeps what it was answered. */
function agent(): { readonly chat: ChatHandler; readonly answers: (readonly ResumeEntry[] | undefined)[] } {
  const answers: (readonly ResumeEntry[] | undefined)[] = []
  return {
    answers,
    async chat(request, response) {
      const { threadId, runId, resume }: RunAgentInput = JSON.parse(await textOf(request))
      const { events = [], end = {} } = runs[answers.length] ?? {}
      answers.push(resume)
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      const started = { type: 'RUN_STARTED', threadId, runId }
      for (const event of [started, ...events, { type: 'RUN_FINISHED', threadId, runId, ...end }])
        response.write(`data: ${JSON.stringify(event)}\n\n`)
      response.end()
    },
  }
}

async function textOf(request: IncomingMessage): Promise<string> {
  let text = ''
  for await (const chunk of request.setEncoding('utf8')) text += chunk
  return text
}

let browser: Browser

beforeAll(async () => {
  browser = await launchBrowser()
})
afterAll(() => browser.close())

const pages: readonly PageName[] = full ? ['react', 'solid', 'vue', 'svelte'] : ['react']

test.each(pages)(
  'a question is a form that its schema checks, and every request says who asks (%s)',
  async (name) => {
    const { chat: handler, answers } = agent()
    const chat = await openChat(browser, await pageOnOtherServer(connection, handler, name))
    const { page } = chat
    const question = page.getByRole('region', { name: 'A question for you' })
    const send = question.getByRole('button', { name: 'Send answer' })
    await chat.send('Tidy up')
    await question.getByText('Where shall the old logs go?').waitFor()
    expect(await question.locator('.asked-by').textContent()).toBe('Requested by the subagent Planner')
    expect(await question.getByText('⟨U+202E⟩').count()).toBe(1)
    expect(await question.locator('img').count()).toBe(0)

    // what cannot be read is told at every field, and the first of them has the focus
    await question.getByLabel('Depth').fill('lots')
    await send.click()
    const path = question.getByRole('textbox', { name: 'Folder' })
    await expect.poll(() => path.getAttribute('aria-invalid')).toBe('true')
    await expect.poll(() => path.evaluate((field) => field === document.activeElement)).toBe(true)
    expect(await question.getByRole('alert').allTextContents()).toEqual([
      'This is required.',
      'This must be a whole number.',
      'This is required.',
    ])
    await chat.screenshot(`${name}-question`)

    // what does not fit the schema is told by what the field is described with
    await path.fill('logs')
    await question.getByLabel('Depth').fill('12')
    await question.getByLabel('How').selectOption('move')
    await send.click()
    const depth = question.getByLabel('Depth')
    await expect.poll(() => depth.getAttribute('aria-invalid')).toBe('true')
    const described = (await depth.getAttribute('aria-describedby')) ?? ''
    expect(await page.locator(`[id="${described}"]`).textContent()).toBe('This must be at most 9.')
    expect(answers).toHaveLength(1)

    await depth.fill('3')
    await question.getByLabel('Report to').fill('ada@example.org')
    await question.getByLabel('Keep empty folders').check()
    await question.getByLabel('Tags').fill('["old"]')
    await send.click()

    const card = chat.request('ada')
    await card.waitFor()
    const payload = {
      folder: 'logs',
      depth: 3,
      how: 'move',
      mail: 'ada@example.org',
      keep: true,
      tags: ['old'],
    }
    expect(answers[1]).toEqual([{ interruptId: 'q1', status: 'resolved', payload }])
    expect(await question.count()).toBe(0)
    const asker = 'Requested by the subagent Mailer, for Planner'
    expect(await card.locator('.asked-by').textContent()).toBe(asker)
    await chat.screenshot(`${name}-asked-by`)
    await page.getByRole('button', { name: 'One by one…' }).click()
    expect(await page.getByRole('dialog').locator('.asked-by').textContent()).toBe(asker)
    await page.getByRole('dialog').getByRole('button', { name: 'Approve once' }).click()

    await question.getByText('Anything else?').waitFor()
    expect(answers[2]).toMatchObject([{ interruptId: 'a1', payload: { approved: true } }])
    await question.getByRole('button', { name: 'Decline' }).click()
    await page.locator('.prose').filter({ hasText: 'All is done.' }).waitFor()
    expect(answers[3]).toEqual([{ interruptId: 'q2', status: 'cancelled' }])
    expect(await question.count()).toBe(0)
    expect(chat.complaints).toEqual([])
    await page.context().close()
  },
)

function isInView(element: Element): boolean {
  const { top } = element.getBoundingClientRect()
  return top >= (document.querySelector('main')?.getBoundingClientRect().top ?? 0)
}

test.each(['light', 'dark'] as const)('a question fits a phone, %s', async (colorScheme) => {
  const options = { viewport: { width: 360, height: 740 }, colorScheme, isMobile: true, hasTouch: true }
  const chat = await openChat(browser, await pageOnOtherServer(connection, agent().chat), options)
  const { page } = chat
  await chat.send('Tidy up')
  // it comes up at its beginning, however long it is
  await expect
    .poll(() => page.getByRole('heading', { name: 'A question for you' }).evaluate(isInView))
    .toBe(true)
  await chat.screenshot(`react-phone-${colorScheme}-question`)
  await page.getByRole('button', { name: 'Send answer' }).click()
  await page.getByText('This is required.').first().waitFor()
  const width = await page.locator('main').evaluate((main) => main.scrollWidth - main.clientWidth)
  expect(width).toBe(0)
  await page.context().close()
})
