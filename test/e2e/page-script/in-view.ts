import { expect } from 'vitest'
import type { Bench } from './bench.js'

const long = `write "${'All work and no play.\n'.repeat(40)}" to long.txt`
const mail = 'mail ada@example.org saying "Dear Ada,\n\nthe crane is back."'

/** Windows, and what is asked in them. */
const windows: readonly [string, { readonly width: number; readonly height: number }, string][] = [
  ['a long card', { width: 1280, height: 800 }, long],
  ['the first of two that just fits', { width: 860, height: 640 }, 'delete notes.txt and todo.md'],
  ['a mail on a phone', { width: 390, height: 640 }, mail],
  ['a mail at 200 % zoom', { width: 640, height: 400 }, mail],
  ['a mail at 400 % zoom', { width: 320, height: 256 }, mail],
]

/** What a person sees of a request without scrolling, and that nothing covers a choice. */
export function keepingInView({ spec, open }: Bench): void {
  for (const [what, viewport, text] of windows)
    spec(`F39 a tall card opens at its top: ${what}`, async () => {
      const demo = await open({ viewport })
      await demo.send('help')
      await demo.settled()
      await demo.send(text)
      const card = demo.page.locator('.tool[data-state="approval-requested"]').first()
      const name = card.locator('.tool-name')
      await name.waitFor()
      await demo.settled()
      await expect.poll(() => name.evaluate(isSeen), { message: what }).toBe(true)
      await expect.poll(() => card.evaluate(beginsInView), { message: `${what}: its edge` }).toBe(true)
      await demo.screenshot(`opens-${viewport.width}`)
      expect(demo.complaints).toEqual([])
    })

  spec('F41 nothing covers a choice, wherever the conversation is scrolled to', async () => {
    const { page, send, request, settled, ...demo } = await open({ viewport: { width: 1100, height: 600 } })
    await send('delete notes.txt, todo.md, logs/app.log and reports/budget.csv')
    await request('reports/budget.csv').waitFor()
    await settled()
    const { seen, covered } = await page.evaluate(coveredChoices)
    expect(covered).toEqual([])
    expect(seen).toBeGreaterThan(30)
    await page.locator('.chat-scroll').evaluate((element) => element.scrollTo(0, 0))
    await page.getByRole('button', { name: 'Scroll to end' }).waitFor()
    await demo.screenshot('scrolled-up')
    expect(demo.complaints).toEqual([])
  })

  spec('F41 a message that was just sent is in view, wherever the conversation was scrolled to', async () => {
    const { page, send, settled, wire, ...demo } = await open({ viewport: { width: 1100, height: 600 } })
    await send('help')
    await settled()
    await send('help')
    await settled()
    await page.locator('.chat-scroll').evaluate((element) => element.scrollTo(0, 0))
    await page.getByRole('button', { name: 'Scroll to end' }).waitFor()
    wire.holdAfter('TEXT_MESSAGE_CONTENT')
    await send('hello')
    await page.locator('.user-text').filter({ hasText: 'hello' }).waitFor()
    await expect.poll(() => page.locator('.user-text').last().evaluate(isSeen)).toBe(true)
    wire.release()
    await settled()
    expect(demo.complaints).toEqual([])
  })
}

/** Runs in the page: whether the middle of an element is in the window, and nothing is in front of it. */
function isSeen(element: Element): boolean {
  const { left, top, width, height } = element.getBoundingClientRect()
  const at = document.elementFromPoint(left + width / 2, top + height / 2)
  return at !== null && (element.contains(at) || at.contains(element))
}

/** Runs in the page: whether the upper edge of a card is in the window, below the header. */
function beginsInView(card: Element): boolean {
  const { top } = card.getBoundingClientRect()
  return (
    top >= Math.max(0, card.closest('.chat-scroll')?.getBoundingClientRect().top ?? 0) && top < innerHeight
  )
}

/** Runs in the page: scrolls through the conversation, and collects the choices in view with something else in front of them. */
async function coveredChoices(): Promise<{ seen: number; covered: readonly string[] }> {
  const scroller = document.querySelector('.chat-scroll')
  if (!scroller) throw new Error('There is no conversation.')
  const covered: string[] = []
  let seen = 0
  for (let at = 0; at <= scroller.scrollHeight - scroller.clientHeight; at += 30) {
    scroller.scrollTop = at
    for (let frame = 0; frame < 2; frame++) await new Promise((resolve) => requestAnimationFrame(resolve))
    const view = scroller.getBoundingClientRect()
    for (const button of scroller.querySelectorAll('.approval-choices button')) {
      const { left, right, top, bottom } = button.getBoundingClientRect()
      if (top < view.top || bottom > view.bottom) continue
      seen++
      for (const x of [left + 2, right - 2]) {
        const front = document.elementFromPoint(x, (top + bottom) / 2)
        if (!button.contains(front))
          covered.push(`${button.textContent} at ${at}: under .${front?.className}`)
      }
    }
  }
  return { seen, covered }
}
