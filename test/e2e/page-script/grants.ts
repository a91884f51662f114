import { expect } from 'vitest'
import { full } from '../../full.js'
import type { Bench, Demo } from './bench.js'

/** The list of what was approved for the rest of the chat, as a person sees it. */
function standingOf({ page }: Demo) {
  const section = page.getByRole('region', { name: 'Session approvals' })
  const title = section.locator('summary')
  return {
    section,
    title,
    rows: section.getByRole('listitem'),
    button: (name: string) => section.getByRole('button', { name, exact: true }),
    open: () => title.click(),
    /** Waits until so many stand. */
    count: (words: string) => title.getByText(words, { exact: true }).waitFor(),
    gone: () => section.waitFor({ state: 'detached' }),
  }
}

/** Asks for something, answers it by a button and waits until the file is there. */
async function answered(demo: Demo, text: string, button: string, file: string): Promise<void> {
  await demo.send(text)
  await demo.request(file).getByRole('button', { name: button }).click()
  await ran(demo, file)
}

async function ran(demo: Demo, file: string): Promise<void> {
  await expect.poll(() => demo.has(file)).toBe(true)
  await demo.settled()
}

const always = 'Always (this session)'
const once = 'Approve once'

/** Approvals that stand for the rest of the chat: listed, and ended by the person. */
export function revoking({ spec, open }: Bench): void {
  spec(
    'S3.124 a standing approval is listed, after a reload too, and once it is revoked the next call asks again',
    async () => {
      const demo = await open()
      const { section, title, rows, button, count, gone, ...standing } = standingOf(demo)
      await answered(demo, 'rename notes.txt to a.txt', always, 'a.txt')
      await count('1 session approval')
      await standing.open()
      expect(await rows.allInnerTexts()).toEqual([expect.stringMatching(/^move_file\s+until .+\s+since \d/s)])
      const since = Date.parse((await rows.locator('time').getAttribute('datetime')) ?? '')
      expect(Math.abs(Date.now() - since)).toBeLessThan(60_000)
      await demo.screenshot('standing')

      await demo.page.reload()
      await count('1 session approval')
      await demo.send('rename a.txt to b.txt')
      await ran(demo, 'b.txt')
      expect(await demo.cards().filter({ hasText: 'b.txt' }).getByText('You approved').count()).toBe(0)

      await title.focus()
      await demo.page.keyboard.press('Enter')
      await button('Revoke move_file').focus()
      await demo.page.keyboard.press('Enter')
      await gone()
      await expect.poll(() => demo.page.evaluate(() => document.activeElement?.id)).toBe('composer-input')
      await answered(demo, 'rename b.txt to c.txt', once, 'c.txt')
      expect(await section.count(), 'a yes to one call does not stand').toBe(0)
      expect(demo.complaints).toEqual([])
    },
  )

  // What follows is decided by the client and by shared code.
  if (!full) return
  spec(
    'S3.124 of several standing approvals one is revoked, or all; a new chat begins without any',
    async () => {
      const demo = await open()
      const { rows, button, count, gone, ...standing } = standingOf(demo)
      await answered(demo, 'write "one" to a.txt', always, 'a.txt')
      await answered(demo, 'write "two" to b.txt', always, 'b.txt')
      await answered(demo, 'rename notes.txt to c.txt', always, 'c.txt')
      await count('3 session approvals')
      await standing.open()
      await button('Revoke write_file: a.txt').click()
      await count('2 session approvals')
      expect(await rows.allInnerTexts()).toEqual([
        expect.stringMatching(/^write_file: b.txt/),
        expect.stringMatching(/^move_file/),
      ])
      await demo.send('write "three" to a.txt')
      await demo.request('a.txt').getByRole('button', { name: once }).click()
      await expect.poll(() => demo.read('a.txt')).toBe('three')
      await demo.settled()
      await demo.send('write "four" to b.txt')
      await expect.poll(() => demo.read('b.txt')).toBe('four')
      await demo.settled()

      await button('Revoke all').click()
      await gone()
      await demo.send('write "five" to b.txt')
      await demo.request('b.txt').getByRole('button', { name: always }).click()
      await count('1 session approval')
      await demo.settled()
      await demo.page.getByRole('link', { name: 'New chat' }).click()
      await gone()
      await demo.send('write "six" to b.txt')
      await demo.request('b.txt').waitFor()
      expect(await demo.read('b.txt')).toBe('five')
      expect(demo.complaints).toEqual([])
    },
  )

  spec('S3.124 where the standing approvals cannot be read or revoked the page says so', async () => {
    const demo = await open()
    const { section, title, rows, button, count, gone, ...standing } = standingOf(demo)
    // Until it is mended: the list is read at other times too, as when it is opened.
    const cut = (method: string) =>
      demo.page.route('**/api/grants?*', (route) =>
        route.request().method() === method ? route.abort('connectionrefused') : route.continue(),
      )
    const mend = () => demo.page.unroute('**/api/grants?*')
    await answered(demo, 'rename notes.txt to a.txt', always, 'a.txt')
    await count('1 session approval')
    await cut('GET')
    await demo.page.reload()
    // A conversation that is restored late has the list read once more.
    await demo.cards('move_file').waitFor()
    await demo.page.waitForLoadState('networkidle')
    await section.getByText('Could not load the session approvals of this chat.').waitFor()
    expect(await title.count()).toBe(0)
    await mend()
    await button('Reload the list').click()
    await count('1 session approval')

    await standing.open()
    await cut('DELETE')
    await button('Revoke move_file').click()
    await section.getByText('The server did not confirm the revocation.').waitFor()
    expect(await rows.count()).toBe(1)
    await mend()
    await button('Revoke move_file').click()
    await gone()
    await answered(demo, 'rename a.txt to b.txt', once, 'b.txt')
    // The browser itself reports the requests that this test has cut.
    expect(demo.complaints.filter((text) => !text.includes('ERR_CONNECTION_REFUSED'))).toEqual([])
  })
}
