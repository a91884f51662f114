import type { ChatPage } from './demo.js'

/** A page that is busy hears of nothing, and clicks before it does: the person saw the old state. */
export function clickWhileBusy({ page }: ChatPage, name: string, busyFor: number): Promise<void> {
  return page.evaluate(
    ([label, ms]) =>
      new Promise<void>((done) => {
        const button = [...document.querySelectorAll('button')].find(
          ({ textContent }) => textContent?.trim() === label,
        )
        setTimeout(() => {
          const until = performance.now() + Number(ms)
          while (performance.now() < until);
          button?.click()
          done()
        })
      }),
    [name, busyFor] as const,
  )
}
