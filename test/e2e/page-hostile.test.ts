import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { full } from '../full.js'
import { type HostileArguments, hostileArguments } from '../hostile-arguments.js'
import { demoServer, launchBrowser, openChat, type PageName } from './demo.js'

let browser: Browser
const servers = new Map<PageName, ReturnType<typeof demoServer>>()

beforeAll(async () => {
  browser = await launchBrowser()
})
afterAll(async () => {
  await browser?.close()
  for (const server of servers.values()) await server.close()
})

/** One run that asks about every entry of the table: the approval of the entry `at` is `h<at>`. */
function runOf(table: readonly HostileArguments[], threadId: string, runId: string): string {
  const calls = table.flatMap(({ input, message, toolName = 'run_command' }, at) => {
    const toolCallId = `c${at}`
    const approval = {
      id: `h${at}`,
      needsApproval: true,
      options: ['deny', 'once', 'session'],
      allowEdits: true,
      token: `token-${at}`,
      ...(message !== undefined && { message }),
    }
    return [
      { type: 'TOOL_CALL_START', toolCallId, toolCallName: toolName },
      { type: 'TOOL_CALL_ARGS', toolCallId, delta: JSON.stringify(input) },
      { type: 'TOOL_CALL_END', toolCallId },
      { type: 'CUSTOM', name: 'approval-requested', value: { toolCallId, toolName, input, approval } },
    ]
  })
  const interrupts = table.map((_, at) => ({ id: `h${at}`, reason: 'tool_call', toolCallId: `c${at}` }))
  const events = [
    { type: 'RUN_STARTED', threadId, runId },
    ...calls,
    { type: 'RUN_FINISHED', threadId, runId, outcome: { type: 'interrupt', interrupts } },
  ]
  return events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('')
}

/** The page of one framework with a request for every entry. */
async function asked(name: PageName, table: readonly HostileArguments[]) {
  const server = servers.get(name) ?? demoServer(name)
  servers.set(name, server)
  const chat = await openChat(browser, (await server.open()).url)
  await chat.page.route('**/api/chat', async (route) => {
    const { threadId, runId } = route.request().postDataJSON()
    await route.fulfill({ contentType: 'text/event-stream', body: runOf(table, threadId, runId) })
  })
  // The server knows nothing of this conversation.
  await chat.page.route('**/api/chat?threadId=*', (route) =>
    route.fulfill({ json: { version: 1, createdAt: 0, messages: [] } }),
  )
  await chat.send('go')
  await chat.page.locator('#tool-h0').waitFor()
  await chat.settled()
  return chat
}

/** What a person has in front of them: a card, or the dialog. */
interface Look {
  /** The labels of the buttons that approve, or lead to a form that does, and can be pressed. */
  readonly pressable: readonly string[]
  readonly warned: boolean
  /** All that can be read, in the order of the lines. */
  readonly text: string
  /** Why the payload is not in sight although it stands there: cut off by a box that scrolls, or its letters are in another order. */
  readonly trouble: string | undefined
  /** The tallest stretch without a letter in the arguments and the message, in pixels. */
  readonly gap: number
}

/** Runs in the page. `last` presses "Show all" first. */
async function lookAt({
  selector,
  payload,
  expand,
}: {
  selector: string
  payload: string
  expand: boolean
}): Promise<Look> {
  const root = document.querySelector<HTMLElement>(selector)
  if (!root) throw new Error(`There is no ${selector}.`)
  const buttons = () => [...root.querySelectorAll('button')]
  const settle = () => new Promise((resolve) => setTimeout(resolve, 30))
  if (expand) {
    for (const button of buttons()) if (button.textContent?.includes('Show all')) button.click()
    await settle()
  }
  const approves = /Approve|Always|Edit/
  const pressable = buttons().filter((button) => !button.disabled && approves.test(button.textContent ?? ''))
  const labels = pressable.map((button) => button.textContent?.trim() ?? '')
  const warned = root.querySelector('.arguments-warning') !== null
  // biome-ignore lint/performance/useDomNodeTextContent: what is not rendered cannot be read
  const text = root.innerText

  const shown = root.querySelectorAll('.argument-key, .argument-value, .code-block, .server-words')
  const lines: DOMRect[] = []
  let trouble: string | undefined
  for (const box of shown) {
    if (/[\u0590-\u08ff]/.test(box.textContent ?? '')) trouble = reordered(box)
    const walker = document.createTreeWalker(box, NodeFilter.SHOW_TEXT)
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const { data } = node as Text
      for (const { index, 0: line } of data.matchAll(/[^\n]*\S[^\n]*/g))
        lines.push(...rectsOf(node, index, line.length))
      const at = data.indexOf(payload)
      if (at < 0) continue
      for (const rect of rectsOf(node, at, payload.length)) {
        for (let above = node.parentElement; above && root.contains(above); above = above.parentElement) {
          const frame = above.getBoundingClientRect()
          const clips = getComputedStyle(above).overflowY !== 'visible' && !above.matches('dialog')
          if (clips && (rect.bottom > frame.bottom + 1 || rect.right > frame.right + 1))
            trouble = `it is cut off by .${above.className}`
        }
      }
    }
  }
  lines.sort((a, b) => a.top - b.top)
  let gap = 0
  let bottom = lines[0]?.bottom ?? 0
  for (const line of lines) {
    gap = Math.max(gap, line.top - bottom)
    bottom = Math.max(bottom, line.bottom)
  }
  return { pressable: labels, warned, text, trouble, gap: Math.round(gap) }

  /** Whether a character stands before one that it should follow. Right-to-left letters may, among themselves. */
  function reordered(box: Element): string | undefined {
    const walker = document.createTreeWalker(box, NodeFilter.SHOW_TEXT)
    let before: DOMRect | undefined
    for (let node = walker.nextNode(); node; node = walker.nextNode())
      for (const { index, 0: char } of (node as Text).data.matchAll(/\S/g)) {
        if (/[\u0590-\u08ff]/.test(char)) continue
        const [rect] = rectsOf(node, index, 1)
        if (rect && before && Math.abs(before.top - rect.top) < 3 && rect.left < before.left)
          return `"${char}" of "${(node as Text).data}" is out of place`
        before = rect ?? before
      }
    return undefined
  }

  function rectsOf(node: Node, start: number, length: number): DOMRect[] {
    const range = document.createRange()
    range.setStart(node, start)
    range.setEnd(node, start + length)
    return [...range.getClientRects()].filter((rect) => rect.width > 0)
  }
}

/** What is wrong with an entry as it is shown first; `undefined` where it is readable or held back. */
function faultOf({ payload, warned }: HostileArguments, look: Look): string | undefined {
  if (look.pressable.length === 0) return undefined
  const free = `${look.pressable.join(', ')} can be pressed, and`
  if (!look.text.includes(payload)) return `${free} the payload is not shown`
  if (look.trouble !== undefined) return `${free} ${look.trouble}`
  if (look.gap > 120) return `${free} ${look.gap} pixels are blank`
  if (warned && !look.warned) return `${free} there is no warning`
  return undefined
}

/** What is wrong once everything was asked for. */
function faultOfWhole({ payload, warned }: HostileArguments, look: Look): string | undefined {
  if (!look.pressable.some((label) => label.includes('Approve')))
    return 'it cannot be approved after all of it was shown'
  if (!look.text.includes(payload)) return 'the payload is not shown in the whole'
  if (warned && !look.warned) return 'there is no warning'
  return undefined
}

/** Every fault of the cards, by the name of the entry, and how many entries were held back. */
async function faultsOfCards(page: Page, table: readonly HostileArguments[]) {
  const faults: string[] = []
  let held = 0
  for (const [at, entry] of table.entries()) {
    const of = { selector: `.tool:has(#tool-h${at})`, payload: entry.payload }
    const first = await page.evaluate(lookAt, { ...of, expand: false })
    if (first.pressable.length === 0) held++
    const fault =
      faultOf(entry, first) ?? faultOfWhole(entry, await page.evaluate(lookAt, { ...of, expand: true }))
    if (fault !== undefined) faults.push(`${entry.name}: ${fault}`)
  }
  return { faults, held }
}

/** The same of the dialog, which shows one request after the other. */
async function faultsOfDialog(page: Page, table: readonly HostileArguments[]) {
  const faults: string[] = []
  let held = 0
  await page.getByRole('button', { name: 'One by one…' }).click()
  for (const [at, entry] of table.entries()) {
    await page
      .locator('.dialog-count')
      .getByText(`${at + 1} of ${table.length}`)
      .waitFor()
    const of = { selector: 'dialog', payload: entry.payload }
    const first = await page.evaluate(lookAt, { ...of, expand: false })
    if (first.pressable.length === 0) held++
    const fault =
      faultOf(entry, first) ?? faultOfWhole(entry, await page.evaluate(lookAt, { ...of, expand: true }))
    if (fault !== undefined) faults.push(`${entry.name}: ${fault}`)
    await page.locator('.dialog-next').click()
  }
  return { faults, held }
}

/** One function decides on every page, so one page is enough for every change. */
const pages: readonly PageName[] = full ? ['react', 'solid', 'vue', 'svelte'] : ['react']

test.each(pages)(
  'F24 F37 F38 each hostile argument is readable on its card, or held back until all was shown (%s)',
  async (name) => {
    const chat = await asked(name, hostileArguments)
    const { faults, held } = await faultsOfCards(chat.page, hostileArguments)
    console.info(
      `${name}: ${hostileArguments.length} entries on cards, ${held} held back, ${faults.length} faults`,
    )
    expect(faults).toEqual([])
    expect(chat.complaints).toEqual([])
    await chat.page.context().close()
  },
)

/** The dialog goes through the entries one by one, which takes twice as long. */
const dialogs: readonly HostileArguments[] = full
  ? hostileArguments
  : hostileArguments.filter((_, at) => at % 3 === 0)

test.each(pages)(
  'F24 F37 F38 each hostile argument is readable in the dialog, or held back until all was shown (%s)',
  async (name) => {
    const chat = await asked(name, dialogs)
    const { faults, held } = await faultsOfDialog(chat.page, dialogs)
    console.info(
      `${name}: ${dialogs.length} entries in the dialog, ${held} held back, ${faults.length} faults`,
    )
    expect(faults).toEqual([])
    expect(chat.complaints).toEqual([])
    await chat.page.context().close()
  },
)

test.each(pages)(
  'F38 what is held back cannot be approved by the keyboard, by a form or by a click that is forced (%s)',
  async (name) => {
    const table = hostileArguments.filter((entry) => entry.name === '17 KB of prose')
    const chat = await asked(name, table)
    const { page } = chat
    const sent = chat.requests()
    await page.locator('#tool-h0').focus()
    for (let tabs = 0; tabs < 8; tabs++) {
      await page.keyboard.press('Tab')
      const isYes = await page.evaluate(() =>
        /Approve|Always|Edit/.test(document.activeElement?.textContent ?? ''),
      )
      if (isYes) await page.keyboard.press('Enter')
      await page.evaluate(pressWhatApproves)
    }
    await page.getByText('One request is waiting for you').waitFor()
    expect(chat.requests()).toBe(sent)
    await page.context().close()
  },
)

/** Runs in the page: clicks and submits whatever could approve, as a script or an eager finger would. */
function pressWhatApproves(): void {
  for (const button of document.querySelectorAll('button'))
    if (/Approve|Always|Edit/.test(button.textContent ?? '')) button.click()
  for (const form of document.querySelectorAll<HTMLFormElement>('.approval-form'))
    if (/Approve/.test(form.textContent ?? '')) form.requestSubmit()
}
