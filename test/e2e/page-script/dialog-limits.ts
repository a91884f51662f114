import { expect } from 'vitest'
import { busyBeforeClick } from '../busy.js'
import { approve, type Bench, deny } from './bench.js'
import { asked, both, composerHasFocus, dialogOf, focusInDialog } from './dialog-bench.js'

/** The dialog where things happen around it: reloads, other tabs, repeated events, the keyboard alone, hostile texts. */
export function keepingOneByOne({ spec, open }: Bench): void {
  spec('S3.96 after a reload and in a new chat the dialog shows what waits now', async () => {
    const demo = await open()
    const { button, shows, gone, open: reopen, dialog } = await asked(demo, both)
    await button('Approve once').click()
    await shows('todo.md')
    await demo.page.reload()
    await demo.page.getByText('One request is waiting for you').waitFor()
    expect(await dialog.count()).toBe(0)
    await demo.screenshot('reload-pending')
    await reopen()
    await shows('todo.md')
    await demo.page.keyboard.press('Escape')
    await gone()
    await demo.page.getByRole('link', { name: 'New chat' }).click()
    expect(await demo.page.locator('.pending-bar').count()).toBe(0)
    await demo.send('delete logs/app.log')
    await demo.settled()
    await reopen()
    await shows('logs/app.log')
    expect(demo.complaints).toEqual([])
  })

  spec(
    'S3.96 the dialog goes when another tab has answered, and a click that came too late is told so',
    async () => {
      const demo = await open()
      const { gone } = await asked(demo, 'delete notes.txt')
      const other = await demo.openTab()
      await approve(other.request('notes.txt'))
      await gone()
      await demo.cards('delete_file').filter({ hasText: 'Done' }).waitFor()
      await demo.settled()

      await demo.send('delete todo.md')
      await demo.settled()
      await other.request('todo.md').waitFor()
      await other.settled()
      await dialogOf(other).open()
      // Watched from here on: what the server says later replaces it, perhaps before anybody looks again.
      const told = other.page.evaluate(appears, 'Another answer was first, perhaps in another tab.')
      const { click } = await busyBeforeClick(other, 'Approve once')
      await deny(demo.request('todo.md'), 'still needed')
      await demo.cards('delete_file').filter({ hasText: 'Denied' }).waitFor()
      await demo.settled()
      await click()
      await told
      await dialogOf(other).gone()
      await other.cards('delete_file').filter({ hasText: 'Denied' }).waitFor()
      expect([demo.has('notes.txt'), demo.has('todo.md')]).toEqual([false, true])
      expect([...demo.complaints, ...other.complaints]).toEqual([])
    },
  )

  spec('S3.97 a request that is told twice is shown once', async () => {
    const demo = await open()
    await demo.page.route('**/api/chat', async (route) => {
      const response = await route.fetch()
      const frames = (await response.text()).split('\n\n')
      const doubled = frames.flatMap((frame) =>
        frame.includes('approval-requested') ? [frame, frame] : [frame],
      )
      expect(doubled.length - frames.length).toBe(2)
      await route.fulfill({ response, body: doubled.join('\n\n') })
    })
    const { count, dialog } = await asked(demo, both)
    expect(await count.textContent()).toMatch(/^1 of 2$/i)
    expect(await demo.cards().count()).toBe(2)
    expect(await dialog.count()).toBe(1)
  })

  spec(
    'S3.98 the dialog by keyboard alone: the focus stays in it, Escape answers nothing, no answer is at hand by itself',
    async () => {
      const demo = await open()
      const { page } = demo
      const { dialog, gone, shows } = dialogOf(demo)
      const press = async (...keys: string[]) => {
        for (const key of keys) await page.keyboard.press(key)
      }
      await composerHasFocus(demo)
      await page.keyboard.type('rename notes.txt to a.txt, then delete todo.md and a.txt')
      await press('Enter')
      await demo.request('notes.txt').waitFor()
      await demo.settled()
      await press('Shift+Tab', 'Enter')
      await dialog.waitFor()
      expect(await dialog.getAttribute('aria-labelledby')).toBe('approval-dialog-title')
      expect(await page.getByRole('dialog', { name: 'move_file' }).count()).toBe(1)
      expect(await focusInDialog(demo), 'neither Enter nor Space answers').toBe('move_file')
      await press('Enter', 'Space')
      expect(await dialog.count()).toBe(1)

      const seen: string[] = []
      for (let at = 0; at < 12; at++) {
        await press('Tab')
        const place = await page.evaluate(() => {
          const { activeElement: now, body } = document
          return now === body || now?.closest('dialog') ? now?.textContent?.trim().slice(0, 21) : 'OUTSIDE'
        })
        if (place !== undefined) seen.push(place)
      }
      expect(seen).not.toContain('OUTSIDE')
      expect(seen).toEqual(
        expect.arrayContaining([
          'Approve once',
          'Always (this session)',
          'Deny',
          'Deny with a reason…',
          'Later',
        ]),
      )

      await press('Escape')
      await gone()
      expect(await page.evaluate(() => document.activeElement?.textContent?.trim())).toBe('One by one…')
      expect(await demo.request('notes.txt').count(), 'Escape is no answer').toBe(1)
      expect(demo.requests()).toBe(1)

      await press('Enter')
      await shows('move_file')
      await press('Tab', 'Enter')
      await gone()
      await demo.request('todo.md').waitFor()
      await demo.settled()
      await composerHasFocus(demo)
      await press('Shift+Tab', 'Enter')
      await shows('todo.md')
      await press('Tab', 'Tab', 'Space')
      await shows('a.txt')
      expect(await focusInDialog(demo), 'the next one begins at its name').toBe('delete_file')
      await press('Tab', 'Enter')
      await gone()
      await composerHasFocus(demo)
      await page.locator('.prose').filter({ hasText: 'Deleted a.txt' }).waitFor()
      expect([demo.has('todo.md'), demo.has('a.txt'), demo.has('notes.txt')]).toEqual([true, false, false])
      expect(demo.complaints).toEqual([])
    },
  )

  spec(
    'S3.99 in the dialog arguments are text, never markup, and all of a long text is seen before a yes',
    async () => {
      const demo = await open()
      const filler = 'All work and no play. '.repeat(60)
      const { text, button, dialog } = await asked(
        demo,
        `write "<img src=x onerror=alert(1)> a\u202Eb ${filler}" to page.html`,
      )
      expect(await text.textContent()).toContain('<img src=x onerror=alert(1)> a⟨U+202E⟩b')
      expect(await demo.page.locator('img').count()).toBe(0)
      await dialog.getByText('Careful: some characters here are invisible').waitFor()
      expect(await button('Approve once').isDisabled()).toBe(true)
      expect(await button('Deny').isDisabled()).toBe(false)
      await dialog.getByRole('button', { name: 'Show all' }).click()
      expect(await button('Approve once').isDisabled()).toBe(false)
      await button('Approve once').click()
      await expect.poll(() => demo.has('page.html')).toBe(true)
      expect(demo.complaints).toEqual([])
    },
  )
}

/** Runs in the page: resolves once a text is there, however briefly. */
function appears(text: string): Promise<void> {
  return new Promise((resolve) => {
    const observer = new MutationObserver(() => {
      if (document.body.textContent?.includes(text)) resolve()
    })
    observer.observe(document.body, { subtree: true, childList: true, characterData: true })
  })
}
