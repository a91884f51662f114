import { expect } from 'vitest'
import type { Bench, Demo } from './bench.js'

const phone = { viewport: { width: 360, height: 740 } }

const row = ({ page }: Demo, title: string) =>
  page.getByRole('navigation', { name: 'Chats' }).getByRole('link', { name: title, exact: true })

const focused = ({ page }: Demo) => page.evaluate(() => document.activeElement?.textContent?.trim())

/** Presses a button by keyboard. */
async function press({ page }: Demo, name: string): Promise<void> {
  await page.getByRole('button', { name, exact: true }).focus()
  await page.keyboard.press('Enter')
}

/** Holds back what waits for the next frame, as a busy machine does. Call the result to let it through. */
async function holdFrames({ page }: Demo): Promise<() => Promise<void>> {
  await page.evaluate(() => {
    const original = window.requestAnimationFrame
    const held: FrameRequestCallback[] = []
    window.requestAnimationFrame = (callback) => held.push(callback)
    window.addEventListener(
      'frames',
      () => {
        window.requestAnimationFrame = original
        for (const callback of held) callback(performance.now())
      },
      { once: true },
    )
  })
  return () => page.evaluate(() => void window.dispatchEvent(new Event('frames')))
}

/** The list of conversations, and the address of each. */
export function choosing({ spec, open }: Bench): void {
  spec(
    'conversations are listed and opened; F44 an open request stays in its own, also after "New chat"',
    async () => {
      const demo = await open()
      await demo.send('delete notes.txt')
      await demo.request('notes.txt').waitFor()
      await demo.settled()
      const address = demo.page.url()
      await row(demo, 'delete notes.txt').first().waitFor()
      await demo.page.getByRole('link', { name: 'New chat' }).click()
      await demo.send('hello, this is new')
      await demo.page.locator('.prose').waitFor()
      await demo.settled()
      await row(demo, 'hello, this is new').waitFor()
      expect(await row(demo, 'hello, this is new').getAttribute('aria-current')).toBe('page')
      await demo.screenshot('chats')
      await row(demo, 'delete notes.txt').first().click()
      await demo.request('notes.txt').waitFor()
      expect(demo.page.url()).toBe(address)
      await demo.page.goBack()
      await demo.page.locator('.user-text').filter({ hasText: 'hello, this is new' }).waitFor()
      expect(demo.complaints).toEqual([])
    },
  )

  spec(
    'a conversation is renamed and deleted by keyboard, also on a phone; Escape changes nothing',
    async () => {
      const demo = await open(phone)
      const { page } = demo
      await demo.send('hello, rename me')
      await demo.page.locator('.prose').waitFor()
      await demo.settled()
      await press(demo, 'Chats')
      await row(demo, 'hello, rename me').waitFor()
      await demo.screenshot('chats-phone')
      await press(demo, 'Rename hello, rename me')
      await page.keyboard.type('Another name')
      await page.keyboard.press('Enter')
      await row(demo, 'Another name').waitFor()
      await expect.poll(() => focused(demo)).toBe('Another name')

      await press(demo, 'Delete Another name')
      expect(await focused(demo)).toBe('Keep')
      await page.keyboard.press('Escape')
      await expect.poll(() => focused(demo)).toBe('Another name')
      await press(demo, 'Rename Another name')
      await page.keyboard.type('Not this')
      const paint = await holdFrames(demo)
      await page.keyboard.press('Escape')
      await row(demo, 'Another name').waitFor()
      await page.getByRole('button', { name: 'Delete Another name', exact: true }).focus()
      await paint()
      await page.keyboard.press('Enter')
      await page.keyboard.press('Shift+Tab')
      await page.keyboard.press('Enter')
      await page.getByRole('heading', { name: 'Ask. Read. Sign.' }).waitFor()
      await press(demo, 'Chats')
      await page.locator('.chats-list').waitFor()
      await expect.poll(() => row(demo, 'Another name').count()).toBe(0)
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(360)
      expect(demo.complaints).toEqual([])
    },
  )

  spec('F42 what the server refused is said in words for the user, with what helps', async () => {
    const demo = await open()
    const alert = demo.page.getByRole('alert')
    const cases = [
      [401, '', 'You are signed out'],
      [413, '', 'This is too much to send at once'],
      [507, '{"error":{"code":"thread-full","limit":"maxMessages"}}', 'This chat is full'],
      [507, '{"error":{"code":"thread-full","limit":"store"}}', 'The server has no room at the moment'],
      [502, '<h1>Bad Gateway</h1>', 'The server is not available right now'],
    ] as const
    await demo.page.route('**/api/chat', (route) => {
      const [status, body] = cases[demo.requests() - 1] ?? [500, '']
      return route.fulfill({ status, body })
    })
    await demo.send('hello')
    for (const [index, [, , title]] of cases.entries()) {
      if (index > 0) await alert.getByRole('button', { name: 'Retry' }).click()
      await alert.getByText(title, { exact: true }).waitFor()
      expect(await alert.textContent()).not.toMatch(/POST|api|\d{3}/)
    }
    await demo.page.unroute('**/api/chat')
    await alert.getByRole('button', { name: 'Retry' }).click()
    await demo.page.locator('.prose').filter({ hasText: 'Ask for something' }).waitFor()
    await demo.settled()
    expect(await alert.count()).toBe(0)
    expect(await demo.page.locator('.user-text').allInnerTexts()).toEqual(['hello'])
  })

  spec(
    'F42 a connection that is lost in mid-stream: the page says that it reconnects, and the reply goes on',
    async () => {
      const { page, send, settled, answers, wire } = await open()
      wire.holdAfter('TEXT_MESSAGE_CONTENT', 3)
      await send('help')
      await page.locator('.prose').first().waitFor()
      wire.cut()
      await page.getByRole('status').getByText('The connection was lost', { exact: true }).waitFor()
      wire.release()
      wire.mend()
      await page.getByText('The connection was lost').waitFor({ state: 'detached' })
      await settled()
      expect(await answers()).toContain('Join requests with')
      expect(await page.locator('.user-text').allInnerTexts()).toEqual(['help'])
    },
  )
}
