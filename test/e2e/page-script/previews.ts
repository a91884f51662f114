import type { Locator, Page } from 'playwright-core'
import { expect } from 'vitest'
import { full } from '../../full.js'
import { findings } from '../accessibility.js'
import { approve, type Bench, type Demo } from './bench.js'
import { looks, sideways } from './looks.js'

const previewIn = (card: Locator) => card.getByRole('region', { name: 'Preview' })

/** The lines of a preview as they are shown, each with its class names for what changed. */
const linesOf = (card: Locator) =>
  previewIn(card)
    .locator('.preview-lines')
    .first()
    .locator('.preview-line')
    .evaluateAll((lines) =>
      lines.map((line) => {
        const kind = /is-(\w+)/.exec(line.className)?.[1]
        const isNew = line.classList.contains('is-new') ? 'new ' : ''
        return `${isNew}${kind}: ${line.querySelector('.preview-text')?.textContent?.trimEnd()}`
      }),
    )

const totalOf = async (card: Locator) =>
  (await previewIn(card).locator('.preview-total .preview-text').first().textContent())?.trimEnd()

/** Moves the focus with Tab until it is on `target`. */
async function tabTo(page: Page, target: Locator): Promise<void> {
  for (let tabs = 0; tabs < 60; tabs++) {
    if (await target.evaluate((element) => element === document.activeElement)) return
    await page.keyboard.press('Tab')
  }
  throw new Error('Tab does not get there.')
}

const many = (count: number) => Array.from({ length: count }, (_, at) => `line ${at + 1}`).join('\n')

/** What a call would do, and approvals for more than one call. */
export function previewing({ spec, open }: Bench): void {
  spec(
    'V14 V15 a diff, a list and a table begin with their totals; what changed meanwhile is marked',
    async () => {
      const demo = await open()
      const { send, request, settled } = demo
      await send('write "# To do" to todo.md')
      const written = request('todo.md')
      expect(await totalOf(written)).toBe('1 line added, 5 lines removed in todo.md')
      expect(await linesOf(written)).toEqual([
        ...['removed: # To do', 'removed: ', 'removed: - [x] Renew the harbour radio licence'],
        ...['removed: - [ ] Crane survey: choose a date', 'removed: - [ ] Tidy up the logs'],
        ...['added: # To do', 'skipped: … no line end'],
      ])
      await approve(written)
      await settled()

      await send('pay 120 EUR to Crane Ltd for invoice 7')
      const paid = request('Crane Ltd')
      expect(await totalOf(paid)).toBe('120 EUR to Crane Ltd, 0 EUR before')
      expect(await previewIn(paid).getByRole('row').allInnerTexts()).toEqual([
        expect.stringMatching(/^Day\s+Amount\s+Reference$/),
        expect.stringMatching(/^\s*now\s+120 EUR\s+invoice 7\s*$/),
      ])
      await approve(paid)
      await settled()

      await send('delete todo.md')
      const deleted = request('todo.md')
      expect(await totalOf(deleted)).toMatch(/^todo.md: 7 bytes, last changed /)
      await demo.change('todo.md', 'Call Mara\n# To do\n')
      await approve(deleted)
      await deleted.getByText('Changed since you looked.').waitFor()
      await settled()
      expect(demo.has('todo.md')).toBe(true)
      expect(await linesOf(deleted)).toEqual(['new same: Call Mara', 'same: # To do'])
      await deleted.getByText('What you saw before').click()
      expect(await previewIn(deleted).locator('.preview-previous .preview-total').textContent()).toMatch(
        /^\s*todo.md: 7 bytes.*\s*gone\s*$/s,
      )
      await approve(deleted)
      await settled()
      expect(demo.has('todo.md')).toBe(false)
      expect(demo.complaints).toEqual([])
    },
  )

  spec(
    'V14 a long preview holds back every approval until all of it is shown, on the card and in the dialog',
    async () => {
      const demo = await open()
      const { page, send, request, settled } = demo
      await send(`write "${many(60)}" to long.txt`)
      const card = request('long.txt')
      await settled()
      const once = card.getByRole('button', { name: 'Approve once' })
      expect(await once.isDisabled()).toBe(true)
      expect(await linesOf(card)).toHaveLength(31)
      await page.getByRole('button', { name: 'One by one…' }).click()
      const dialog = page.getByRole('dialog')
      expect(await dialog.getByRole('button', { name: 'Approve once' }).isDisabled()).toBe(true)
      await dialog.getByRole('button', { name: 'Show all' }).click()
      // 60 lines, and a row for the missing end of the last one
      await expect.poll(() => linesOf(dialog)).toHaveLength(61)
      expect(await dialog.getByRole('button', { name: 'Approve once' }).isDisabled()).toBe(false)
      await dialog.getByRole('button', { name: 'Later' }).click()
      await card.getByRole('button', { name: 'Show all' }).click()
      await expect.poll(() => linesOf(card)).toHaveLength(61)
      await once.click()
      await settled()
      expect(await demo.read('long.txt')).toBe(many(60))
      expect(demo.complaints).toEqual([])
    },
  )

  spec(
    'V14 the preview of an edit is shown before the edit can be approved, and again after each edit',
    async () => {
      const demo = await open()
      const { page, send, request, settled } = demo
      await send('write "Back at noon." to door.txt')
      const card = request('door.txt')
      await card.getByRole('button', { name: 'Edit…' }).click()
      const approved = card.getByRole('button', { name: 'Approve with changes' })
      const asked = card.getByRole('button', { name: 'Preview the changes' })
      const undo = card.getByRole('button', { name: 'Undo my changes' })
      expect(await undo.count()).toBe(0)
      await card.getByLabel('content').fill('Back at one.')
      await undo.click()
      expect(await card.getByLabel('content').inputValue()).toBe('Back at noon.')
      expect(await undo.count()).toBe(0)
      await card.getByLabel('content').fill('Back at one.')
      expect(await approved.count()).toBe(0)
      await asked.focus()
      await page.keyboard.press('Enter')
      await approved.waitFor()
      expect(await linesOf(card)).toEqual(['added: Back at one.', 'skipped: … no line end'])
      const isAway = () => page.evaluate(() => document.activeElement?.className.includes('preview'))
      await expect.poll(isAway, { message: 'Enter once more approves nothing' }).toBe(true)
      await demo.screenshot('edit-preview')
      await card.getByLabel('content').fill('Back at two.')
      expect(await approved.count()).toBe(0)
      await asked.click()
      await approved.click()
      await settled()
      expect(await demo.read('door.txt')).toBe('Back at two.')
      expect(demo.complaints).toEqual([])
    },
  )

  spec('W21 a mandate is chosen, watched and revoked by keyboard, at 360 px', async () => {
    const demo = await open({ viewport: { width: 360, height: 740 } })
    const { page, send, request, cards, settled } = demo
    await send('pay 120 EUR to Crane Ltd for invoice 7')
    const first = request('Crane Ltd')
    const choice = first.getByRole('button', { name: 'Pay Crane Ltd up to 200 EUR in total, for a day' })
    await settled()
    await first.locator('.tool-name').focus()
    await tabTo(page, choice)
    await first.getByRole('button', { name: 'What would it have allowed?' }).first().press('Enter')
    await first.getByText('There is no earlier request of this kind in this chat.').waitFor()
    await tabTo(page, choice)
    await demo.screenshot('mandate-choice-phone')
    expect(await sideways(demo)).toBe(0)
    await page.keyboard.press('Enter')
    const standing = page.getByRole('region', { name: 'Session approvals' })
    await standing.getByText('1 standing approval', { exact: true }).waitFor()
    await settled()
    await first.getByText('You approved this').waitFor({ state: 'detached' })
    await cards('pay_invoice').getByText('You approved this and more').waitFor()

    await send('pay 50 EUR to Crane Ltd for invoice 8')
    await cards('pay_invoice').nth(1).getByText('Allowed beforehand').waitFor()
    await settled()
    const title = standing.locator('summary')
    await page.getByRole('textbox', { name: 'Message' }).focus()
    await page.keyboard.press('Shift+Tab')
    await expect.poll(() => title.evaluate((element) => element === document.activeElement)).toBe(true)
    await page.keyboard.press('Enter')
    await standing.getByText(/^used 2 times, 170 of 200 EUR spent, last .*, until /).waitFor()
    await demo.screenshot('mandate-list-phone')
    expect(await sideways(demo)).toBe(0)

    await tabTo(page, standing.getByRole('button', { name: /^Revoke Pay Crane Ltd/ }))
    await page.keyboard.press('Enter')
    await standing.waitFor({ state: 'detached' })
    await send('pay 1 EUR to Crane Ltd for invoice 9')
    const again = request('invoice 9')
    await again.waitFor()
    await settled()
    await again.getByRole('button', { name: 'What would it have allowed?' }).first().press('Enter')
    await again.getByText(/^Of 1 earlier request in this chat, it would have allowed 1\.$/).waitFor()
    expect(await demo.read('payments.csv')).toMatch(/,120,EUR,invoice 7\n.*,50,EUR,invoice 8\n$/)
    expect(demo.complaints).toEqual([])
  })

  for (const [name, options] of looks)
    spec(
      `V14 V15 W21 looks of previews and mandates: ${name}, without sideways scrolling or serious findings`,
      async () => {
        const demo = await open(options)
        const { page, send, request, settled } = demo
        await send('write a list of all files to todo.md')
        await request('todo.md').waitFor()
        await settled()
        await request('todo.md').evaluate((card) => card.scrollIntoView({ block: 'start' }))
        await shot(demo, `${name}-diff`)
        await send('pay 120 EUR to Crane Ltd for invoice 7')
        await settled()
        await shot(demo, `${name}-table`)
        await page.getByRole('button', { name: 'One by one…' }).click()
        await shot(demo, `${name}-mandates-dialog`)
        await page.keyboard.press('Escape')
        await request('Crane Ltd').getByRole('button', { name: 'Pay Crane Ltd up to' }).click()
        await settled()
        await page.getByText('1 standing approval', { exact: true }).click()
        await shot(demo, `${name}-mandates`)
        await send('delete notes.txt')
        await settled()
        await shot(demo, `${name}-list`)
        await demo.change('notes.txt', 'Harbour office, notes of the week\n\n- The tide gauge is broken.\n')
        await approve(request('notes.txt'))
        await request('Changed since you looked').getByText('What you saw before').click()
        await settled()
        await shot(demo, `${name}-changed`)
        await page.getByRole('button', { name: 'One by one…' }).click()
        await shot(demo, `${name}-preview-dialog`)
        expect(demo.complaints).toEqual([])
      },
    )
}

/** A picture, which must fit and be accessible: axe looks at the page of one framework in `npm test`, and at all in `npm run test:full`. */
async function shot(demo: Demo, name: string): Promise<void> {
  await demo.screenshot(name)
  if (full || demo.name === 'react') expect(await findings(demo.page), name).toEqual([])
  expect(await sideways(demo), name).toBe(0)
}
