import { expect } from 'vitest'
import { approve, type Bench, deny } from './bench.js'

/** Requests answered where they stand, in the thread. */
export function answeringInTheThread({ spec, open }: Bench): void {
  spec(
    'S3.100 the chained scenario: files are deleted, a denied one stays, the mail that follows tells of both',
    async () => {
      const { page, send, request, settled, answers, ...demo } = await open()
      await demo.screenshot('empty')
      await page.getByRole('button', { name: 'Tidy up the logs, then mail the team a summary' }).click()
      await settled()
      await page.getByText('3 requests are waiting for you').waitFor()
      await demo.screenshot('requests')

      await approve(request('logs/app.2.log'))
      await deny(request('logs/import-debug.log'), 'Mara needs it for the audit')
      expect(demo.requests(), 'nothing is sent while a request of the turn is open').toBe(1)
      expect(demo.has('logs/app.2.log')).toBe(true)
      await approve(request('logs/app.3.log'))

      const mail = request('team@example.org')
      await mail.waitFor()
      expect(demo.has('logs/app.2.log')).toBe(false)
      expect(demo.has('logs/app.3.log')).toBe(false)
      expect(demo.has('logs/app.log')).toBe(true)
      expect(demo.has('logs/import-debug.log')).toBe(true)
      expect(await answers()).toContain(
        'Kept logs/import-debug.log, as you decided: “Mara needs it for the audit”.',
      )
      await settled()
      await demo.screenshot('mail')

      expect(demo.has('outbox')).toBe(false)
      await approve(mail)
      await page.locator('.prose').filter({ hasText: 'Sent “What was done with the files”' }).waitFor()
      const [file] = await demo.list('outbox')
      const eml = (await demo.read(`outbox/${file}`)).replaceAll('=\r\n', '')
      expect(eml).toContain('To: team@example.org\r\n')
      expect(eml).toContain('Deleted logs/app.2.log')
      expect(eml).toContain('Mara needs it for the audit')
      await settled()
      expect(demo.requests()).toBe(3)
      await demo.screenshot('done')
      expect(demo.complaints).toEqual([])
    },
  )

  spec(
    'an edit: what the person wrote is what runs, and the card says so; F44 the form shows what stood there before; F54 the page refuses what does not fit, and the request stays open',
    async () => {
      const { page, send, request, cards, settled, ...demo } = await open()
      await send('Write "Back at noon." to door.txt')
      const card = request('door.txt')
      await card.getByRole('button', { name: 'Edit…' }).click()
      await card.getByLabel('content').fill('Back at one.')
      await card.getByText('Before: Back at noon.').waitFor()
      await demo.screenshot('edit')
      await card.getByLabel('content').press('Escape')
      await card.getByRole('button', { name: 'Edit…' }).click()
      expect(await card.getByLabel('content').inputValue(), 'going back loses nothing').toBe('Back at one.')
      const path = card.getByLabel('path')
      await path.fill('')
      const sent: string[] = []
      page.on('request', (request) => sent.push(request.url()))
      await card.getByRole('button', { name: 'Preview the changes' }).click()
      await card.getByRole('alert').filter({ hasText: 'Too small: expected string' }).waitFor()
      await demo.screenshot('edit-that-does-not-fit')
      expect(sent, 'the page asks no server about an edit that does not fit').toEqual([])
      expect(await path.getAttribute('aria-invalid')).toBe('true')
      await expect.poll(() => path.evaluate((field) => field === document.activeElement)).toBe(true)
      expect(await card.getByLabel('content').inputValue(), 'F54 a typo loses nothing').toBe('Back at one.')
      await path.fill('door.txt')
      await card.getByRole('button', { name: 'Preview the changes' }).click()
      await card.getByRole('button', { name: 'Approve with changes' }).click()
      const changed = cards('write_file')
        .filter({ hasText: 'You approved this with changes' })
        .filter({ hasText: 'Done' })
        .filter({ has: page.locator('.tool-summary', { hasText: 'Back at one.' }) })
      await changed.waitFor()
      await settled()
      expect(await demo.read('door.txt')).toBe('Back at one.')
      await page.reload()
      await changed.waitFor()
      expect(demo.complaints).toEqual([])
    },
  )

  spec('a tool of an MCP server is asked about like any other, with what its server says of it', async () => {
    const { page, send, request, settled, ...demo } = await open()
    await send('Clear the folder logs')
    const card = request('mcp__files__clear_folder')
    await card.getByText('The server says of it: "Deletes all files of a folder for good."').waitFor()
    expect(await demo.list('logs')).toHaveLength(5)
    await approve(card)
    await page.locator('.prose').filter({ hasText: 'Deleted 5 files in logs.' }).waitFor()
    await settled()
    expect(await demo.list('logs')).toEqual([])
    expect(demo.complaints).toEqual([])
  })

  spec(
    'approving while other requests still stream in: nothing is lost, one continuation follows',
    async () => {
      const { page, send, request, cards, settled, wire, ...demo } = await open()
      wire.holdAfter('approval-requested', 2)
      const files = [
        'notes.txt',
        'todo.md',
        'reports/quarter-2.md',
        'reports/quarter-3.md',
        'reports/budget.csv',
        'logs/app.log',
      ]
      await send(`Delete ${files.join(', ')}`)
      await approve(request('notes.txt'))
      await cards().filter({ hasText: 'Approved, not sent yet' }).waitFor()
      expect(await page.locator('.thread').getAttribute('aria-busy'), 'the stream is still open').toBe('true')
      await approve(request('todo.md'))
      wire.release()
      for (const file of files.slice(2)) await approve(request(file))
      await page.locator('.prose').filter({ hasText: 'Deleted logs/app.log' }).waitFor()
      await settled()
      expect(files.filter(demo.has)).toEqual([])
      expect(demo.requests()).toBe(2)
      expect(demo.complaints).toEqual([])
    },
  )

  spec('S3.93 a double click gives one answer', async () => {
    const { page, send, request, settled, ...demo } = await open()
    await send('delete notes.txt')
    await request('notes.txt').getByRole('button', { name: 'Approve once' }).dblclick({ force: true })
    await page.locator('.prose').filter({ hasText: 'Deleted notes.txt' }).waitFor()
    await settled()
    expect(demo.requests()).toBe(2)
    expect(demo.complaints).toEqual([])
  })

  spec('S3.93 the second click of a double click answers nothing, on whatever it lands', async () => {
    const { page, send, request, settled, ...demo } = await open()
    await send('delete notes.txt')
    const yes = request('notes.txt').getByRole('button', { name: 'Approve once' })
    await yes.waitFor()
    await settled()
    await yes.dispatchEvent('click', { detail: 2 })
    await page.getByText('One request is waiting for you').waitFor()
    expect(await yes.count()).toBe(1)
    expect(demo.requests()).toBe(1)
    await yes.click()
    await page.locator('.prose').filter({ hasText: 'Deleted notes.txt' }).waitFor()
    expect(demo.complaints).toEqual([])
  })

  spec('F44 one click denies, as one approves, and "always" says how far it goes', async () => {
    const { page, send, request, cards, settled, ...demo } = await open()
    await send('rename notes.txt to a.txt')
    const card = request('notes.txt')
    await card.getByText('“Always” approves later calls like this one in this chat').waitFor()
    await settled()
    await card.getByText('Deny', { exact: true }).click()
    await cards('move_file').filter({ hasText: 'You denied this.' }).waitFor()
    expect(demo.has('notes.txt')).toBe(true)
    expect(demo.complaints).toEqual([])
  })

  spec('S3.98 keyboard alone: focus goes from request to request, Escape answers nothing', async () => {
    const { page, send, request, settled, ...demo } = await open()
    await send('Delete notes.txt and todo.md')
    await request('todo.md').waitFor()
    await settled()
    const focused = () => page.evaluate(() => document.activeElement?.closest('.tool')?.textContent ?? '')
    await page.getByRole('button', { name: 'Show next' }).focus()
    await page.keyboard.press('Enter')
    expect(await focused()).toContain('notes.txt')
    await page.keyboard.press('Tab')
    expect(await page.evaluate(() => document.activeElement?.textContent?.trim())).toBe('Approve once')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.keyboard.type('not this one')
    await page.keyboard.press('Escape')
    expect(await request('notes.txt').count(), 'Escape is no answer').toBe(1)
    expect(await focused()).toContain('notes.txt')
    await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.getByText('One request is waiting for you').waitFor()
    expect(await focused(), 'the focus moved on to the next request').toContain('todo.md')
    for (let choices = 0; choices < 3; choices++) await page.keyboard.press('Tab')
    await page.keyboard.press('Enter')
    await page.keyboard.type('still needed')
    await page.keyboard.press('Enter')
    await page
      .locator('.prose')
      .filter({ hasText: 'Kept todo.md, as you decided: “still needed”.' })
      .waitFor()
    expect([demo.has('notes.txt'), demo.has('todo.md')]).toEqual([false, true])
    expect(demo.complaints).toEqual([])
  })

  spec(
    'S3.91 S3.92 only what is offered can be chosen, and "always" asks no second time in this chat',
    async () => {
      const { page, send, request, cards, settled, ...demo } = await open()
      await send('rename notes.txt to a.txt, then rename a.txt to b.txt, then delete b.txt')
      await request('notes.txt').getByRole('button', { name: 'Always (this session)' }).click()
      const last = request('b.txt')
      await last.getByRole('button', { name: 'Approve once' }).waitFor()
      expect(await last.getByRole('button', { name: 'Always' }).count()).toBe(0)
      expect(await last.getByRole('button', { name: 'Edit' }).count()).toBe(0)
      await cards('move_file').filter({ hasText: 'You approved this for the rest of this chat' }).waitFor()
      expect([demo.has('notes.txt'), demo.has('a.txt'), demo.has('b.txt')]).toEqual([false, false, true])
      await settled()
      expect(demo.complaints).toEqual([])
    },
  )

  spec('files that were listed stand in a table, by the type of the tool', async () => {
    const { send, cards, settled, ...demo } = await open()
    await send('list the files')
    await settled()
    const card = cards('list_files')
    await card.getByText('Arguments and result').click()
    const size = Buffer.byteLength(await demo.read('todo.md'))
    const row = card.getByRole('row').filter({ hasText: 'todo.md' })
    expect(await row.getByRole('cell').allInnerTexts()).toEqual([`${size} bytes`, '2 days ago'])
    await demo.screenshot('listing')
    expect(demo.complaints).toEqual([])
  })

  spec('S3.99 arguments are text, never markup, and hidden characters are written out', async () => {
    const { page, send, request, ...demo } = await open()
    await send('write "<img src=x onerror=alert(1)> a\u202Eb" to page.html')
    const card = request('page.html')
    await card.locator('dl').getByText('<img src=x onerror=alert(1)>').waitFor()
    await card.locator('.preview').getByText('<img src=x onerror=alert(1)>').waitFor()
    await card.locator('dl').getByText('⟨U+202E⟩').waitFor()
    await card.locator('.preview').getByText('⟨U+202E⟩').waitFor()
    await card.getByText('Careful: some characters here are invisible').waitFor()
    expect(await page.locator('img').count()).toBe(0)
    expect(demo.complaints).toEqual([])
  })
}
