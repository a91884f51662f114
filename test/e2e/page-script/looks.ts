import type { BrowserContextOptions } from 'playwright-core'
import { expect } from 'vitest'
import { full } from '../../full.js'
import { approve, type Bench, type Demo, deny } from './bench.js'

const phone = { viewport: { width: 360, height: 740 }, hasTouch: true, isMobile: true }

const light: readonly [string, BrowserContextOptions][] = [
  ['light', {}],
  ['phone', phone],
]
const dark: typeof light = [
  ['dark', { colorScheme: 'dark' }],
  ['phone-dark', { ...phone, colorScheme: 'dark' }],
]

/** Wide and narrow, light and dark. The dark ones differ in colours only. */
export const looks = full ? [...light, ...dark] : light

/** By how many pixels the page scrolls sideways. */
export const sideways = ({ page }: Demo) =>
  page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)

/** The page in light and dark, wide and narrow; a picture of each is kept. */
export function looking({ spec, open }: Bench): void {
  for (const [name, options] of looks) {
    spec(`looks: ${name}, without sideways scrolling`, async () => {
      const demo = await open(options)
      const { page, send, request, settled } = demo
      await demo.screenshot(`${name}-empty`)
      await send('Tidy up the logs')
      await approve(request('logs/app.2.log'))
      await deny(request('logs/import-debug.log'), 'Mara needs it for the audit')
      await settled()
      await demo.screenshot(`${name}-requests`)
      expect(await sideways(demo)).toBe(0)
      await page.getByRole('link', { name: 'New chat' }).click()
      await send('delete notes.txt and todo.md')
      await settled()
      await page.getByRole('button', { name: 'One by one…' }).click()
      await page
        .getByRole('dialog')
        .evaluate((dialog) => Promise.all(dialog.getAnimations().map((a) => a.finished)))
      await demo.screenshot(`${name}-dialog`)
      expect(await sideways(demo)).toBe(0)
      expect(demo.complaints).toEqual([])
    })
  }
}
