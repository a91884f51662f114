import type { Locator } from 'playwright-core'
import { expect } from 'vitest'
import { approve, type Bench } from './bench.js'

/** That the person sees where a card begins. */
async function expectInView(scroller: Locator, card: Locator): Promise<void> {
  const box = (of: Locator) => of.evaluate((element) => element.getBoundingClientRect().toJSON() as DOMRect)
  await expect
    .poll(async () => (await box(card)).top - (await box(scroller)).top, { message: 'it begins in view' })
    .toBeGreaterThanOrEqual(0)
  expect((await box(card)).top).toBeLessThan((await box(scroller)).bottom)
}

/** What a conversation goes through beside its requests. */
export function conversing({ spec, open }: Bench): void {
  spec('a streaming answer grows in place: nothing that is shown of it is made anew', async () => {
    const { page, send, settled, wire, ...demo } = await open()
    wire.holdAfter('TEXT_MESSAGE_CONTENT')
    await send('help')
    await page.locator('.prose').first().waitFor()
    const records = await page
      .locator('.prose')
      .first()
      .evaluateHandle((prose) => {
        const seen = { grown: 0, removed: 0 }
        new MutationObserver((changes) => {
          for (const { type, removedNodes } of changes) {
            if (type === 'characterData') seen.grown++
            for (const node of removedNodes) if (node.textContent) seen.removed++
          }
        }).observe(prose, { subtree: true, childList: true, characterData: true })
        return seen
      })
    // word by word: the page has time to show one before it gets the next
    while ((await records.jsonValue()).grown < 20) {
      wire.next()
      await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => resolve(undefined))))
    }
    wire.release()
    await settled()
    expect((await records.jsonValue()).removed).toBe(0)
    expect(demo.complaints).toEqual([])
  })

  spec(
    'an answer before and after its approval is one turn, with one button to ask for all of it again',
    async () => {
      const { page, send, request, settled, requests, ...demo } = await open()
      await send('delete notes.txt')
      await approve(request('notes.txt'))
      await settled()
      const turns = page.getByRole('log').getByRole('article')
      expect(await turns.evaluateAll((all) => all.map((turn) => turn.dataset.role))).toEqual([
        'user',
        'assistant',
      ])
      expect(await turns.last().locator('.tool, .prose').count()).toBeGreaterThan(1)
      await demo.screenshot('turn')
      await page.getByRole('button', { name: 'Regenerate' }).click()
      await request('notes.txt').waitFor()
      await settled()
      expect([await turns.count(), requests()]).toEqual([2, 3])
      expect(demo.complaints).toEqual([])
    },
  )

  spec('stop ends the answer at once and the chat goes on', async () => {
    const { page, send, answers, settled, wire, ...demo } = await open()
    wire.holdAfter('TEXT_MESSAGE_CONTENT', 5)
    await send('help')
    await page.locator('.prose').first().waitFor()
    // The user's message can be copied, but not half an answer.
    const copies = page.getByRole('log').getByRole('button', { name: 'Copy message' })
    expect(await copies.count()).toBe(1)
    await page.getByRole('button', { name: 'Stop' }).click()
    const text = await answers()
    expect(await page.getByRole('button', { name: 'Stop' }).count()).toBe(0)
    expect(await copies.count()).toBe(2)
    wire.release()
    await send('hello')
    await page.locator('.prose').filter({ hasText: 'Ask for something' }).waitFor()
    await settled()
    expect(await answers()).toMatch(new RegExp(`^${text.slice(0, 20)}`))
    expect(await answers()).not.toContain('Join requests with')
    expect(demo.complaints).toEqual([])
  })

  spec('a failed request is told with the way out, and retry sends the same answer once', async () => {
    const { page, send, request, cards, settled, ...demo } = await open()
    await page.route('**/api/chat', (route) => route.abort('connectionrefused'), { times: 1 })
    await send('delete notes.txt')
    await page.getByRole('alert').getByText('The server could not be reached', { exact: true }).waitFor()
    await demo.screenshot('error')
    await page.getByRole('button', { name: 'Retry' }).click()
    await request('notes.txt').waitFor()
    expect(await page.getByRole('alert').count()).toBe(0)

    await settled()
    await page.route('**/api/chat', (route) => route.abort('connectionrefused'), { times: 1 })
    await approve(request('notes.txt'))
    await cards('delete_file').filter({ hasText: 'Approved, not sent yet' }).waitFor()
    expect(demo.has('notes.txt')).toBe(true)
    await page.getByRole('button', { name: 'Retry' }).click()
    await page.locator('.prose').filter({ hasText: 'Deleted notes.txt' }).waitFor()
    expect(demo.has('notes.txt')).toBe(false)
    // The browser itself reports the two requests that this test has cut.
    expect(demo.complaints.filter((text) => !text.includes('ERR_CONNECTION_REFUSED'))).toEqual([])
  })

  spec('messages queue while an answer streams, and can be taken back', async () => {
    const { page, send, settled, wire, ...demo } = await open()
    wire.holdAfter('TEXT_MESSAGE_CONTENT')
    await send('help')
    await page.locator('.prose').first().waitFor()
    await send('read todo.md')
    await send('hello')
    await page.getByRole('button', { name: 'Cancel: hello' }).click()
    expect(await page.locator('.queue-text').allInnerTexts()).toEqual(['read todo.md'])
    wire.release()
    await page.locator('.prose').filter({ hasText: 'Renew the harbour radio licence' }).waitFor()
    await settled()
    expect(await page.locator('.user-text').allInnerTexts()).toEqual(['help', 'read todo.md'])
    expect(demo.complaints).toEqual([])
  })

  spec('speaking while a request is open withdraws it, runs nothing, and the answer says so', async () => {
    const { page, send, request, cards, settled, ...demo } = await open()
    await send('delete notes.txt')
    await request('notes.txt').waitFor()
    await settled()
    await page.getByRole('textbox', { name: 'Message' }).fill('read notes.txt')
    await page.getByText('Sending a message withdraws the open request.').waitFor()
    await page.keyboard.press('Enter')
    await cards('delete_file').filter({ hasText: 'Withdrawn' }).waitFor()
    await page.locator('.prose').filter({ hasText: 'Kept notes.txt' }).waitFor()
    await settled()
    expect(demo.has('notes.txt')).toBe(true)
    expect(demo.complaints).toEqual([])
  })

  spec('a long argument is cut, and approving waits until all of it was shown', async () => {
    const { send, request, settled, ...demo } = await open()
    await send(`write "${'All work and no play. '.repeat(60)}" to long.txt`)
    const card = request('long.txt')
    const yes = card.getByRole('button', { name: 'Approve once' })
    await yes.waitFor()
    expect(await yes.isDisabled()).toBe(true)
    await demo.screenshot('long')
    await card.getByRole('button', { name: 'Show all' }).click()
    expect(await yes.isDisabled()).toBe(false)
    await yes.click()
    await settled()
    await expect.poll(() => demo.has('long.txt')).toBe(true)
    expect(demo.complaints).toEqual([])
  })

  spec('a tool that fails is told as it is', async () => {
    const { page, send, request, cards, ...demo } = await open()
    await send('delete nope.txt')
    await approve(request('nope.txt'))
    await cards('delete_file').filter({ hasText: 'Failed' }).waitFor()
    await page.locator('.prose').filter({ hasText: 'There is no nope.txt in the workspace.' }).waitFor()
    expect(demo.complaints).toEqual([])
  })

  spec('a new chat follows its end anew, wherever the old one was scrolled to', async () => {
    const { page, send, request, settled, ...demo } = await open({
      viewport: { width: 1100, height: 900 },
    })
    const toEnd = page.getByRole('button', { name: 'Scroll to end' })
    const scroller = page.locator('.chat-scroll')
    await send('help')
    await settled()
    await send('help')
    await settled()
    await scroller.evaluate((element) => element.scrollTo(0, 0))
    await toEnd.waitFor()
    await page.getByRole('link', { name: 'New chat' }).click()
    await page.getByRole('heading', { name: 'Ask. Read. Sign.' }).waitFor()
    await toEnd.waitFor({ state: 'hidden' })

    await send('delete notes.txt, todo.md, logs/app.log, reports/budget.csv and reports/quarter-2.md')
    await request('reports/quarter-2.md').waitFor()
    await settled()
    await expectInView(scroller, request('notes.txt'))
    expect(demo.complaints).toEqual([])
  })

  spec('a page that is loaded again shows the first of the requests that wait', async () => {
    const { page, send, request, settled, ...demo } = await open({
      viewport: { width: 1100, height: 900 },
    })
    await send('help')
    await settled()
    await send('help')
    await settled()
    await send('delete notes.txt, todo.md, logs/app.log and reports/budget.csv')
    await request('reports/budget.csv').waitFor()
    await settled()
    await page.reload()
    await request('reports/budget.csv').waitFor()
    await settled()
    await expectInView(page.locator('.chat-scroll'), request('notes.txt'))
    expect(demo.complaints).toEqual([])
  })

  spec('who scrolls up is left there, even if the page grows in the same frame', async () => {
    const { page, send, settled, ...demo } = await open({ viewport: { width: 1100, height: 600 } })
    await send('help')
    await settled()
    await send('help')
    await settled()
    const scroller = page.locator('.chat-scroll')
    const to = await scroller.evaluate(async (element) => {
      const frame = () => new Promise((resolve) => requestAnimationFrame(resolve))
      await frame()
      element.scrollTop = 10
      element.style.paddingBottom = '200px'
      element.style.borderBottom = '40px solid'
      await frame()
      await frame()
      return element.scrollTop
    })
    expect(to).toBe(10)
    await page.getByRole('button', { name: 'Scroll to end' }).waitFor()
    expect(demo.complaints).toEqual([])
  })

  spec('a new chat begins empty and nothing of the old one is answered', async () => {
    const { page, send, request, ...demo } = await open()
    await send('delete notes.txt')
    await request('notes.txt').waitFor()
    await page.getByRole('link', { name: 'New chat' }).click()
    await page.getByRole('heading', { name: 'Ask. Read. Sign.' }).waitFor()
    expect(await page.locator('.pending-bar').count()).toBe(0)
    await send('hello')
    await page.locator('.prose').filter({ hasText: 'Ask for something' }).waitFor()
    expect(demo.has('notes.txt')).toBe(true)
    expect(demo.complaints).toEqual([])
  })
}
