import type { BrowserContextOptions, Page } from 'playwright-core'
import { expect } from 'vitest'
import { blocksOf } from '../../docs/markdown.js'
import { full } from '../../full.js'
import { findings } from '../accessibility.js'
import { approve, type Bench, type Demo, deny } from './bench.js'
import { sideways } from './looks.js'

type Look = (state: string) => Promise<void>

/** What is looked for in every state, and how the page is opened for that. */
interface Way {
  readonly name: string
  readonly options: BrowserContextOptions
  problems(page: Page): Promise<readonly string[]>
}

const ways: readonly Way[] = [
  { name: 'axe finds nothing serious or critical', options: {}, problems: findings },
  {
    // 1,280 x 1,024 pixels at 400 %
    name: 'at 400 % zoom nothing is cut off at the side, and nothing covers what can be pressed',
    options: { viewport: { width: 320, height: 256 } },
    problems: (page) => page.evaluate(coveredControls),
  },
  {
    name: 'in forced colours every control has an edge, and the focus is seen',
    options: { forcedColors: 'active' },
    problems: (page) => page.evaluate(flatControls),
  },
]

/** Three ways to use a page, in all the states that it has; and what a screen reader is told of a request. */
export function accessing({ spec, open }: Bench): void {
  for (const { name, options, problems } of full ? ways : ways.slice(0, 1))
    spec(`accessible in every state: ${name}`, async () => {
      const demo = await open(options)
      const seen: string[] = []
      await everyState(demo, async (state) => {
        seen.push(state)
        const found = await problems(demo.page)
        if (found.length > 0) await demo.screenshot(`inaccessible-${state.replaceAll(' ', '-')}`)
        expect.soft(found, state).toEqual([])
        expect.soft(await sideways(demo), state).toBe(0)
      })
      expect(new Set(seen).size).toBeGreaterThanOrEqual(20)
    })

  spec('F44 in forced colours approving and denying are told apart by their edges', async () => {
    const { send, request } = await open({ forcedColors: 'active' })
    await send('delete notes.txt')
    const edge = (label: string) =>
      request('notes.txt')
        .getByText(label, { exact: true })
        .evaluate((button) => {
          const { borderTopStyle, borderTopWidth } = getComputedStyle(button)
          return [borderTopStyle, borderTopWidth]
        })
    expect(await edge('Approve once')).toEqual(['solid', '3px'])
    expect(await edge('Deny')).toEqual(['dashed', '1px'])
  })

  spec('a screen reader is told of an approval request what the docs say', async () => {
    const { send, request, settled } = await open()
    await send('Write "Back at noon." to door.txt')
    const card = request('door.txt')
    await card.waitFor()
    await settled()
    const tree = (await card.ariaSnapshot()).replace(/(time: ).*/, '$1Nov 27, 2026, 3:35 AM')
    const [told] = blocksOf('docs/interface.md').filter(({ language }) => language === 'yaml')
    expect(tree).toBe(told?.code.trimEnd())
  })
}

/** Brings the page into its states, one after the other. */
async function everyState(demo: Demo, look: Look): Promise<void> {
  const { page, send, settled, wire } = demo
  await look('empty')
  wire.holdAfter('TEXT_MESSAGE_CONTENT')
  await send('help')
  await page.locator('.prose').first().waitFor()
  await look('a reply that streams')
  await send('hello')
  await page.locator('.queue-text').waitFor()
  await look('a message in the queue')
  wire.release()
  await page.locator('.prose').nth(1).waitFor()
  await settled()
  await look('replies')
  await askedThreeTimes(demo, look)
  await edited(demo, look)
  await paid(demo, look)
  await changed(demo, look)
  await troubled(demo, look)
}

async function askedThreeTimes({ page, send, request, cards, settled }: Demo, look: Look): Promise<void> {
  await send('Tidy up the logs')
  const kept = request('logs/import-debug.log')
  await kept.waitFor()
  await settled()
  await look('three requests')
  await page.getByRole('button', { name: 'One by one…' }).click()
  await look('the dialog')
  await page.getByRole('dialog').getByRole('button', { name: 'Later', exact: true }).click()
  await page.keyboard.press('Escape')
  await page.getByText('1 set aside').waitFor()
  await look('a request set aside')
  await kept.getByRole('button', { name: 'Deny with a reason…' }).click()
  await look('the form for a denial')
  await kept.getByRole('button', { name: 'Back' }).click()
  await deny(kept, 'Mara needs it')
  await look('an answer that is not sent yet')
  await approve(request('logs/app.2.log'))
  await approve(request('logs/app.3.log'))
  await page.locator('.prose').filter({ hasText: 'Kept logs/import-debug.log' }).waitFor()
  await settled()
  await look('done and denied')
  await send('list the files')
  await settled()
  await cards('list_files').last().getByText('Arguments and result').click()
  await look('a table of files')
}

async function edited({ send, request, settled }: Demo, look: Look): Promise<void> {
  await send('Write "Back at noon.\u202E" to door.txt')
  const card = request('door.txt')
  await card.waitFor()
  await settled()
  await look('hidden characters')
  await card.getByRole('button', { name: 'Edit…' }).click()
  await look('the form for an edit')
  await card.getByLabel('path').fill('')
  await card.getByRole('button', { name: 'Preview the changes' }).click()
  await card.getByRole('alert').waitFor()
  await look('an edit that does not fit')
  await card.getByLabel('path').fill('door.txt')
  await card.getByLabel('content').fill('Back at one.')
  await card.getByRole('button', { name: 'Preview the changes' }).click()
  await card.getByRole('button', { name: 'Approve with changes' }).click({ trial: true })
  await look('the preview of an edit')
  await card.getByRole('button', { name: 'Approve with changes' }).click()
  await settled()
  await send(`write "${'All work and no play. '.repeat(60)}" to long.txt`)
  await request('long.txt').waitFor()
  await settled()
  await look('arguments that are cut')
  await request('long.txt').getByRole('button', { name: 'Show all' }).click()
  await look('arguments shown whole')
  await approve(request('long.txt'))
  await settled()
}

async function paid({ page, send, request, settled }: Demo, look: Look): Promise<void> {
  await send('pay 120 EUR to Crane Ltd for invoice 7')
  const card = request('Crane Ltd')
  await card.waitFor()
  await settled()
  await look('a table and mandates')
  await card.getByRole('button', { name: 'What would it have allowed?' }).first().click()
  await card.getByText('There is no earlier request of this kind in this chat.').waitFor()
  await look('what a mandate would have allowed')
  await page.getByRole('button', { name: 'One by one…' }).click()
  await look('mandates in the dialog')
  await page.keyboard.press('Escape')
  await card.getByRole('button', { name: 'Pay Crane Ltd up to' }).click()
  await settled()
  await page.getByText('1 standing approval', { exact: true }).click()
  await look('standing approvals')
}

async function changed({ change, send, request, settled }: Demo, look: Look): Promise<void> {
  await send('delete notes.txt')
  await request('notes.txt').waitFor()
  await settled()
  await change('notes.txt', 'Harbour office, notes of the week\n')
  await approve(request('notes.txt'))
  await request('Changed since you looked').getByText('What you saw before').click()
  await settled()
  await look('what changed since it was shown')
  await approve(request('notes.txt'))
  await settled()
}

async function troubled({ page, send }: Demo, look: Look): Promise<void> {
  await page.route('**/api/chat', (route) => route.fulfill({ status: 502, body: '' }))
  await send('hello')
  await page.getByRole('alert').waitFor()
  await look('an error')
}

/** Runs in the page. What can be pressed and, once it has the focus, is covered by something else or out of the window. */
function coveredControls(): readonly string[] {
  const inFront = document.querySelector('dialog:modal') ?? document.body
  const controls = [...inFront.querySelectorAll<HTMLElement>('button:enabled, a[href], summary, textarea')]
  const before = document.activeElement
  const covered = controls.flatMap((control) => {
    if (!control.checkVisibility({ visibilityProperty: true })) return []
    control.focus()
    const { left, top, width, height } = control.getBoundingClientRect()
    const at = document.elementFromPoint(left + width / 2, top + Math.min(height, innerHeight) / 2)
    if (at !== null && (control.contains(at) || at.contains(control))) return []
    const over = at === null ? 'out of the window' : `under .${at.className}`
    return `"${control.textContent?.trim() || control.id}" is ${over}`
  })
  if (before instanceof HTMLElement) before.focus()
  return covered
}

/** Runs in the page. Buttons and fields without an edge or an underline, and controls on which the focus is not seen. */
function flatControls(): readonly string[] {
  const inFront = document.querySelector('dialog:modal') ?? document.body
  const before = document.activeElement
  const drawn = (width: string, style: string) => Number.parseFloat(width) > 0 && style !== 'none'
  const controls = [...inFront.querySelectorAll<HTMLElement>('button, a[href], summary, textarea')]
  const flat = controls.flatMap((control) => {
    if (!control.checkVisibility({ visibilityProperty: true })) return []
    const name = `"${control.textContent?.trim() || control.id}"`
    const look = getComputedStyle(control)
    const hasEdge = drawn(look.borderTopWidth, look.borderTopStyle) || control.matches('summary')
    const isLink = look.textDecorationLine.includes('underline') || control.matches('a')
    const problems = hasEdge || isLink ? [] : [`${name} has no edge`]
    if (control.matches(':disabled')) return problems
    control.focus({ focusVisible: true } as FocusOptions)
    const { outlineWidth, outlineStyle } = getComputedStyle(control)
    return drawn(outlineWidth, outlineStyle) ? problems : [...problems, `${name} hides the focus`]
  })
  if (before instanceof HTMLElement) before.focus()
  return flat
}
