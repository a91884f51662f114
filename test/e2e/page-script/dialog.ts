import { expect } from 'vitest'
import type { Bench } from './bench.js'
import { asked, both, composerHasFocus, dialogOf, focusInDialog } from './dialog-bench.js'

/** The requests one by one, in the native dialog: what is shown, and what each button does. */
export function answeringOneByOne({ spec, open }: Bench): void {
  spec(
    'F40 S3.90 the dialog shows the tool, its fields and the message as the card does, and no arguments where there are none',
    async () => {
      const demo = await open()
      const { title, text, dialog } = await asked(demo, 'delete notes.txt then restore the sample files')
      expect(await dialog.evaluate((element) => element.matches('dialog:modal'))).toBe(true)
      expect(await title.textContent()).toBe('delete_file')
      expect(await text.getByRole('definition').allInnerTexts()).toEqual(['notes.txt'])
      await dialog.getByText('This deletes notes.txt from the disk. It cannot be undone.').waitFor()
      await demo.screenshot('dialog')
      await dialogOf(demo).button('Approve once').click()
      await demo.page.getByText('One request is waiting for you').waitFor()
      await demo.settled()
      await dialogOf(demo).open()
      expect(await title.textContent()).toBe('restore_samples')
      expect(await text.count()).toBe(0)
      await dialog.getByText('This puts back every sample file').waitFor()
      expect(demo.complaints).toEqual([])
    },
  )

  spec(
    'F40 S3.91 the buttons of the card in its order, only for what is offered, and Deny is called Deny',
    async () => {
      const demo = await open()
      const { choices, button, gone } = await asked(demo, 'rename notes.txt to a.txt, then delete a.txt')
      expect(await choices()).toEqual([
        'Approve once',
        'Always (this session)',
        'Deny',
        'Deny with a reason…',
      ])
      await button('Approve once').click()
      await gone()
      await demo.request('a.txt').waitFor()
      await demo.settled()
      await dialogOf(demo).open()
      expect(await choices()).toEqual(['Approve once', 'Deny', 'Deny with a reason…'])
      expect(demo.complaints).toEqual([])
    },
  )

  spec('S3.92 each button does what it says: deny, approve once, approve for the session', async () => {
    const demo = await open()
    const first = await asked(
      demo,
      'rename notes.txt to a.txt, then rename todo.md to b.md, then rename b.md to c.md',
    )
    await first.button('Deny').click()
    await demo.cards('move_file').filter({ hasText: 'You denied this' }).waitFor()
    await demo.request('b.md').waitFor()
    await demo.settled()
    expect(demo.has('notes.txt')).toBe(true)
    await first.open()
    await first.button('Approve once').click()
    await demo.request('c.md').waitFor()
    await demo.settled()
    expect(demo.has('b.md')).toBe(true)
    await first.open()
    await first.button('Always (this session)').click()
    await demo.cards('move_file').filter({ hasText: 'You approved this for the rest of this chat' }).waitFor()
    await expect.poll(() => demo.has('c.md')).toBe(true)
    await demo.settled()
    await demo.send('rename c.md to d.md')
    await expect.poll(() => demo.has('d.md')).toBe(true)
    expect(await demo.request('').count(), 'it is not asked again').toBe(0)
    expect(demo.complaints).toEqual([])
  })

  spec(
    'S3.93 a double click answers one request, also where the next comes up under the pointer',
    async () => {
      const demo = await open()
      const { button, shows, gone } = await asked(demo, both)
      await button('Approve once').dblclick()
      await shows('todo.md')
      await demo.cards().filter({ hasText: 'Approved, not sent yet' }).waitFor()
      expect(await demo.request('todo.md').count()).toBe(1)
      await button('Deny').dblclick({ delay: 20 })
      await gone()
      await demo.page.locator('.prose').filter({ hasText: 'Kept todo.md' }).waitFor()
      await demo.settled()
      expect([demo.has('notes.txt'), demo.has('todo.md')]).toEqual([false, true])
      expect(demo.requests()).toBe(2)
      expect(demo.complaints).toEqual([])
    },
  )

  spec('S3.94 several: in the order they were asked, counted, each answered for itself', async () => {
    const demo = await open()
    const { button, count, shows, gone, dialog } = await asked(
      demo,
      'delete notes.txt, todo.md and logs/app.log',
    )
    expect(await count.textContent()).toMatch(/^1 of 3$/i)
    await shows('notes.txt')
    await dialog.locator('.dialog-next').click()
    await shows('todo.md')
    expect(await count.textContent()).toMatch(/^2 of 3$/i)
    await button('Deny').click()
    await shows('notes.txt')
    expect(await count.textContent()).toMatch(/^1 of 2$/i)
    await button('Approve once').click()
    await shows('logs/app.log')
    expect(await count.count()).toBe(0)
    expect(await dialog.locator('.dialog-next').count()).toBe(0)
    expect(demo.requests(), 'nothing is sent while a request of the turn is open').toBe(1)
    await button('Approve once').click()
    await gone()
    await composerHasFocus(demo)
    await demo.page.locator('.prose').filter({ hasText: 'Deleted logs/app.log' }).waitFor()
    expect([demo.has('notes.txt'), demo.has('todo.md'), demo.has('logs/app.log')]).toEqual([
      false,
      true,
      false,
    ])
    expect(demo.requests()).toBe(2)
    expect(demo.complaints).toEqual([])
  })

  spec(
    'F40 the dialog edits and denies with a reason as the card does; Escape leaves the form and not the dialog',
    async () => {
      const demo = await open()
      const { dialog, button, gone, text, open: reopen } = await asked(demo, 'Write "one\ntwo" to door.txt')
      expect(await text.getByRole('definition').last().textContent()).toBe('one\ntwo')
      expect(await dialog.textContent()).not.toContain('Cancel')
      await button('Edit…').click()
      await dialog.getByLabel('content').fill('one')
      await demo.page.keyboard.press('Escape')
      expect(await focusInDialog(demo)).toBe('write_file')
      await button('Edit…').click()
      expect(await dialog.getByLabel('content').inputValue(), 'going back loses nothing').toBe('one')
      await dialog.getByRole('button', { name: 'Preview the changes' }).click()
      await dialog.getByRole('button', { name: 'Approve with changes' }).click()
      await gone()
      await demo.cards('write_file').filter({ hasText: 'You approved this with changes' }).waitFor()
      await demo.settled()
      expect(await demo.read('door.txt')).toBe('one')
      await demo.send('delete notes.txt')
      await demo.request('notes.txt').waitFor()
      await demo.settled()
      await reopen()
      await button('Deny with a reason…').click()
      await dialog.getByRole('textbox', { name: 'Reason' }).fill('still needed')
      await dialog.getByRole('textbox', { name: 'Reason' }).press('Enter')
      await gone()
      await demo.page.locator('.prose').filter({ hasText: 'as you decided: “still needed”' }).waitFor()
      expect(demo.has('notes.txt')).toBe(true)
      expect(demo.complaints).toEqual([])
    },
  )

  spec('S3.95 a request set aside stays pending and can be taken up again', async () => {
    const demo = await open()
    const { button, shows, gone, open: reopen } = await asked(demo, both)
    await button('Later').click()
    await shows('todo.md')
    await button('Later').click()
    await gone()
    await demo.page.getByText('2 requests are waiting for you, 2 set aside').waitFor()
    expect(await demo.request('').count()).toBe(2)
    expect(demo.requests()).toBe(1)
    await demo.screenshot('set-aside')
    await reopen()
    await shows('notes.txt')
    await button('Approve once').click()
    await shows('todo.md')
    await button('Approve once').click()
    await gone()
    await demo.page.locator('.prose').filter({ hasText: 'Deleted todo.md' }).waitFor()
    expect([demo.has('notes.txt'), demo.has('todo.md')]).toEqual([false, false])
    expect(demo.complaints).toEqual([])
  })
}
