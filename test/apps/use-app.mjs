// What a person does with an application of `examples/apps`. All of them look alike: the same words, roles and labels.
import { strictEqual } from 'node:assert/strict'

/** Only to end a test that hangs. */
const timeout = 60_000

/** Uses one application. Resolves to what was seen; throws for anything else, and for a complaint in the console. */
export async function useApp(browser, { url, restart, picture, rendersOnServer, users: [user, other] = [] }) {
  const seen = []
  const complaints = []
  const context = await browser.newContext()
  context.setDefaultTimeout(timeout)
  context.on('console', (message) => {
    const { url } = message.location()
    const isIcon = url.endsWith('/favicon.ico')
    if (['error', 'warning'].includes(message.type()) && !isIcon) complaints.push(`${message.text()} ${url}`)
  })
  context.on('weberror', (error) => complaints.push(String(error.error())))
  try {
    const page = await context.newPage()
    await page.goto(url)
    if (user !== undefined) await signIn(page, user)
    await say(page, 'Order 3 coffees.')
    await reply(page, 'Let me see').waitFor()
    await page.waitForURL(/\/chat\/[\w-]+$/)
    const chat = page.url()
    if ((await shownReply(page)).length >= words.length)
      throw new Error('The reply was over before the reload.')
    await page.reload()
    await question(page).waitFor()
    strictEqual(await reply(page, 'Let me see').count(), 1)
    strictEqual(await shownReply(page), words)
    strictEqual(await question(page).locator('pre').textContent(), '{\n  "item": "coffee",\n  "count": 3\n}')
    seen.push('asked, reloaded in mid-stream')

    if (rendersOnServer) {
      const html = await (await context.request.get(chat)).text()
      if (!/May (?:<!--.*?-->)*place_order(?:<!--.*?-->)* run\?/.test(html))
        throw new Error(`Not rendered:\n${html}`)
      seen.push('rendered on the server')
    }
    const tab = await context.newPage()
    await tab.goto(chat)
    await question(tab).waitFor()
    await question(page).getByRole('button', { name: 'Approve Once' }).click()
    await reply(page, 'Order 1 is placed: 3 coffee.').waitFor()
    await reply(tab, 'Order 1 is placed: 3 coffee.').waitFor()
    strictEqual(await question(tab).count(), 0)
    await tab.close()
    seen.push('approved, also seen in a second tab')

    const send = await holdRequests(page)
    await say(page, 'Order 2 teas.')
    // during a run: shown at once, and sent once the request is answered
    await say(page, 'Order 2 waters.')
    await waiting(page, 'Order 2 waters.').waitFor()
    await send()
    await question(page).getByRole('button', { name: 'Cancel' }).click()
    await reply(page, 'Then nothing is ordered.').waitFor()
    seen.push('denied')

    await question(page).waitFor()
    strictEqual(await waiting(page, 'Order 2 waters.').count(), 0)
    seen.push('a message that waited was shown, and then sent')
    strictEqual(await count(page).inputValue(), '2')
    await count(page).fill('4')
    // the page renders again with each letter, and the edit stays
    await page.getByRole('textbox', { name: 'Message' }).fill('Thank you.')
    await page.getByRole('textbox', { name: 'Message' }).fill('')
    await question(page).getByRole('button', { name: 'Approve This Count' }).click()
    await reply(page, 'Order 2 is placed: 4 water.').waitFor()
    seen.push('edited')

    await say(page, 'Order 1 juice.')
    await question(page).waitFor()
    strictEqual(await count(page).inputValue(), '1')
    if (picture) await page.screenshot({ path: picture })
    // what a browser says about a server that is gone is not a complaint about the application
    const before = complaints.length
    await page.goto('about:blank')
    await restart()
    await page.goto(chat)
    await question(page).waitFor()
    complaints.splice(
      before,
      complaints.length,
      ...complaints.slice(before).filter((text) => !/ERR_CONNECTION_REFUSED/.test(text)),
    )
    // twice, as impatient people do
    await question(page).getByRole('button', { name: 'Approve Once' }).dblclick()
    await reply(page, 'Order 3 is placed: 1 juice.').waitFor()
    await page.reload()
    await reply(page, 'Order 3 is placed: 1 juice.').waitFor()
    strictEqual(await reply(page, 'is placed').count(), 3)
    seen.push('approved after a restart of the server', '3 approvals ran 3 times')

    if (other !== undefined) {
      await page.getByRole('button', { name: 'Sign out' }).click()
      await signIn(page, other)
      await page.goto(chat)
      await page.getByRole('textbox', { name: 'Message' }).waitFor()
      await page.getByText('thread-unknown').or(page.getByText('No messages yet')).first().waitFor()
      strictEqual(await page.getByText('is placed').count(), 0)
      seen.push(`${other} does not see what belongs to ${user}`)
    }
    strictEqual(complaints.join('\n'), '')
    return [...seen, 'nothing in the console']
  } catch (error) {
    const [page] = context.pages()
    const shown = await page?.locator('main').textContent().catch(String)
    error.message += `\nThe page shows:\n${shown}\nThe console: ${complaints.join('\n')}`
    throw error
  } finally {
    await context.close()
  }
}

/** What the scripted model says before it calls the tool. */
const words =
  'Let me see what is needed for that. I compare the prices of the shops nearby, look at what was ordered before, and then place the order, if you agree.'

const question = (page) => page.getByRole('group', { name: 'May place_order run?' })
const count = (page) => question(page).getByRole('spinbutton', { name: 'Count' })
const waiting = (page, text) => page.getByText(`Not sent yet: ${text}`)
const reply = (page, text) => page.locator('p').filter({ hasText: text })

/** The first reply as it is shown, complete or not. */
async function shownReply(page) {
  const text = await reply(page, 'Let me see').textContent()
  return text.replace('assistant:', '').trim()
}

/** Until the result is called, what the page posts does not leave it. */
async function holdRequests(page) {
  let release
  const released = new Promise((resolve) => {
    release = resolve
  })
  await page.route('**/*', async (route) => {
    if (route.request().method() === 'POST') await released
    await route.continue()
  })
  return () => {
    release()
    return page.unrouteAll({ behavior: 'wait' })
  }
}

async function say(page, text) {
  await page.getByRole('textbox', { name: 'Message' }).fill(text)
  await page.getByRole('button', { name: 'Send' }).click()
}

async function signIn(page, name) {
  await page.getByRole('button', { name: `Sign in as ${name}` }).click()
}
