import type { ChatPage } from './demo.js'

/**
 * Keeps a page busy, so that it hears of nothing, until `click` is called: then it clicks before it hears of anything, as a person does who
 * saw the old state. What holds the page still is a request that is answered only then.
 */
export async function busyBeforeClick({ page }: ChatPage, name: string): Promise<{ click(): Promise<void> }> {
  let release = () => {}
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  const busy = new Promise<void>((resolve) => {
    void page.route('**/busy', async (route) => {
      resolve()
      await released
      await route.fulfill({ body: '' })
    })
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
  await busy
  return {
    click: () => {
      release()
      return clicked
    },
  }
}
