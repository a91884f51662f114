import { expect } from 'vitest'
import type { Bench } from './bench.js'
import { composerHasFocus } from './dialog-bench.js'

/** Several requests at once, and a request that goes while somebody is at it. */
export function facingSeveral({ spec, open }: Bench): void {
  spec(
    '"Deny all" answers several requests in one go, and the title of the page counts those open',
    async () => {
      const { page, send, request, settled, ...demo } = await open()
      const all = page.getByRole('button', { name: 'Deny all' })
      await send('delete notes.txt, todo.md and logs/app.log')
      await request('logs/app.log').waitFor()
      await settled()
      await expect.poll(() => page.title()).toMatch(/^\(3\) .*Countersign$/)
      await demo.screenshot('several')
      await all.click()
      await composerHasFocus({ page, send, request, settled, ...demo })
      await page.locator('.prose').filter({ hasText: 'Kept logs/app.log' }).waitFor()
      await settled()
      expect(await page.title()).toMatch(/^[^(]*Countersign$/)
      expect([demo.has('notes.txt'), demo.has('todo.md'), demo.has('logs/app.log')]).toEqual([
        true,
        true,
        true,
      ])
      expect(demo.requests()).toBe(2)
      await send('delete notes.txt')
      await request('notes.txt').waitFor()
      expect(await all.count(), 'one request is denied on its card').toBe(0)
      expect(demo.complaints).toEqual([])
    },
  )

  spec('F43 requests of one tool have names of their own, and so have their buttons', async () => {
    const { page, send, request, settled } = await open()
    await send('delete notes.txt, todo.md and logs/app.log')
    await request('logs/app.log').waitFor()
    await settled()
    for (const file of ['notes.txt', 'todo.md', 'logs/app.log']) {
      const name = `delete_file ${file}`
      expect(await page.getByRole('region', { name, exact: true }).count()).toBe(1)
      expect(await page.getByRole('button', { name: `Approve once: ${name}`, exact: true }).count()).toBe(1)
      expect(await page.getByRole('button', { name: `Deny: ${name}`, exact: true }).count()).toBe(1)
    }
  })

  spec(
    'F43 the focus does not fall to the page: not after "Show all", and not when another tab answers',
    async () => {
      const demo = await open()
      const { page, send, request, settled } = demo
      await send(`write "${'All work and no play. '.repeat(60)}" to long.txt`)
      const card = request('long.txt')
      await settled()
      await card.getByRole('button', { name: 'Show all' }).focus()
      await page.keyboard.press('Enter')
      const focused = () => page.evaluate(() => document.activeElement?.className)
      expect(await focused()).toBe('arguments')
      await card.locator('.preview-lines').focus()
      expect(await focused(), 'what scrolls can be focused').toContain('preview-lines')
      await card.getByText('Approve once', { exact: true }).focus()
      const other = await demo.openTab()
      await other.request('long.txt').getByText('Deny', { exact: true }).click()
      await demo.cards('write_file').filter({ hasText: 'Denied' }).waitFor()
      await expect.poll(focused).toBe('tool-name')
      expect([...demo.complaints, ...other.complaints]).toEqual([])
    },
  )

  spec('F43 a request that expires is announced, and the focus stays at its card', async () => {
    const { page, send, request, cards, settled } = await open()
    await send('Write "Back at noon." to door.txt')
    await request('door.txt').waitFor()
    await settled()
    await page.clock.install()
    await page.reload()
    await request('door.txt').getByText('Approve once', { exact: true }).focus()
    await page.clock.fastForward('25:00:00')
    await cards('write_file').filter({ hasText: 'Expired' }).waitFor()
    await page.getByRole('status').getByText('Expired without an answer: write_file.').waitFor()
    expect(await page.evaluate(() => document.activeElement?.className)).toBe('tool-name')
  })
}
