import type { ChatPage } from './demo.js'

/**
 * A page that is busy until `ready` hears of nothing, and clicks before it does: the person saw the old state. It waits for a request that
 * is answered then, and that holds the page still. Resolves, once the page is busy, with the click to come.
 */
export async function clickWhileBusy(
  { page }: ChatPage,
  name: string,
  ready: Promise<unknown>,
): Promise<{ clicked: Promise<void> }> {
  let busy = () => {}
  const began = new Promise<void>((resolve) => {
    busy = resolve
  })
  await page.route('**/busy', async (route) => {
    busy()
    await ready
    await route.fulfill({ body: '' })
  })
  const clicked = page.evaluate((label) => {
    const button = [...document.querySelectorAll('button')].find(
      ({ textContent }) => textContent?.trim() === label,
    )
    const request = new XMLHttpRequest()
    request.open('GET', '/busy', false)
    request.send()
    button?.click()
  }, name)
  await began
  return { clicked }
}
