// `npm run pictures [NAME...]`: takes the pictures of the README and the docs from the real page (docs/images): stills in light and dark,
// and half a minute of a conversation as an animated WebP. Needs a build (`npm test` or `npm start` makes one) and a Chromium.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { chromium } from 'playwright-core'
import { animatedWebp } from './animated-webp.mjs'
import { readArguments } from './arguments.mjs'
import { findChromium } from './chromium.mjs'

const root = join(import.meta.dirname, '..')
const images = join(root, 'docs/images')
const size = { width: 860, height: 640 }

/** The example server with its own files; `delay` is the pause between two words in milliseconds. */
async function startDemo(delay) {
  const parent = mkdtempSync(join(tmpdir(), 'countersign-pictures-'))
  const env = { ...process.env, PORT: '0', DEMO_DIR: join(parent, 'workspace'), DEMO_DELAY: String(delay) }
  const server = spawn(process.execPath, [join(root, 'examples/server/dist/main.js')], { env })
  let said = ''
  const url = await new Promise((resolve, reject) => {
    const read = (chunk) => {
      said += chunk
      const [found] = /http:\/\/localhost:\d+/.exec(said) ?? []
      if (found) resolve(found)
    }
    server.stdout.on('data', read)
    server.stderr.on('data', read)
    server.once('exit', () => reject(new Error(`The example server ended:\n${said}`)))
  })
  return {
    url,
    close: async () => {
      const ended = once(server, 'exit')
      server.kill()
      await ended
      rmSync(parent, { recursive: true })
    },
  }
}

/** Opens a page on its own server, and closes both afterwards. */
async function withPage(browser, { delay, query = '', ...options }, use) {
  const demo = await startDemo(delay)
  const context = await browser.newContext({ viewport: size, ...options })
  try {
    const page = await context.newPage()
    page.setDefaultTimeout(20_000)
    await page.goto(`${demo.url}/${query}`)
    await use(page)
  } finally {
    await context.close()
    await demo.close()
  }
}

const composer = (page) => page.getByRole('textbox', { name: 'Message' })
const settled = (page) => page.locator('.thread[aria-busy="false"]').waitFor()
const question = (page, text) =>
  page.locator('.tool[data-state="approval-requested"]').filter({ hasText: text })

async function say(page, text) {
  await composer(page).fill(text)
  await page.keyboard.press('Enter')
}

const todo = [
  '# To do',
  '',
  '- [x] Renew the harbour radio licence',
  '- [x] Crane survey: 3 June',
  '- [ ] Tidy up the logs',
  '',
]

/** The stills by name: how each page is opened, what is done in it, and what is taken if it is not the whole page. */
const stills = {
  async questions(page) {
    await say(page, 'delete notes.txt and todo.md')
    await settled(page)
  },
  async dialog(page) {
    await stills.questions(page)
    await page.getByRole('button', { name: 'One by one…' }).click()
    await page.getByRole('dialog').waitFor()
  },
  async preview(page) {
    await say(page, `write "${todo.join('\n')}" to todo.md`)
    await settled(page)
    return question(page, 'todo.md')
  },
  async threads(page) {
    for (const text of ['Help', 'Search for crane', 'Read notes.txt', 'delete notes.txt']) {
      if (text !== 'Help') await page.getByRole('link', { name: 'New chat' }).click()
      await say(page, text)
      await settled(page)
    }
  },
  async devtools(page) {
    await stills.questions(page)
    await question(page, 'notes.txt').getByRole('button', { name: 'Approve once' }).click()
    await settled(page)
    await page.locator('countersign-devtools .row[data-kind="act"]').last().click()
    return page.locator('countersign-devtools')
  },
  async mobile(page) {
    await say(page, 'pay 120 EUR to Crane Ltd for invoice 7')
    await settled(page)
    await page.getByRole('button', { name: 'Scroll to end' }).click()
    await page.getByRole('button', { name: 'Scroll to end' }).waitFor({ state: 'hidden' })
  },
}

const phone = { viewport: { width: 360, height: 800 }, isMobile: true, hasTouch: true }
const opening = {
  preview: { viewport: { width: 760, height: 1000 } },
  threads: { viewport: { width: 1100, height: 700 } },
  devtools: { viewport: { width: 960, height: 860 }, query: '?devtools' },
  mobile: phone,
}

async function takeStills(browser, names) {
  for (const name of names) {
    for (const colorScheme of ['light', 'dark']) {
      const options = { delay: 0, colorScheme, reducedMotion: 'reduce', ...opening[name] }
      await withPage(browser, options, async (page) => {
        const part = (await stills[name](page)) ?? page
        await part.screenshot({ path: join(images, `${name}-${colorScheme}.png`) })
      })
    }
  }
}

/** Half a minute of a user's actions, at human speed. */
async function converse(page) {
  await pause(800)
  await composer(page).pressSequentially('Tidy up the logs, then mail the team a summary', { delay: 45 })
  await pause(400)
  await page.keyboard.press('Enter')
  await question(page, 'logs/app.2.log').waitFor()
  await settled(page)
  await pause(3000)
  await question(page, 'logs/app.2.log').getByRole('button', { name: 'Approve once' }).click()
  await pause(1700)
  await question(page, 'logs/app.3.log').getByRole('button', { name: 'Approve once' }).click()
  await pause(1700)
  const audit = question(page, 'logs/import-debug.log')
  await audit.getByRole('button', { name: 'Deny with a reason…' }).click()
  await audit.getByLabel('Reason').pressSequentially('Mara needs it for the audit', { delay: 45 })
  await pause(500)
  await audit.getByRole('button', { name: 'Deny', exact: true }).click()
  await pause(1200)
  for (;;) {
    await settled(page)
    const next = page.locator('.tool[data-state="approval-requested"]').first()
    if ((await next.count()) === 0) break
    await next.scrollIntoViewIfNeeded()
    await pause(3000)
    await next.getByRole('button', { name: 'Approve once' }).click()
    await pause(900)
  }
  await pause(4500)
}

/** Screenshots of the page while `act` runs, each with its time. */
async function film(page, act) {
  const shots = []
  let over = false
  const filming = (async () => {
    while (!over) {
      shots.push({ at: performance.now(), png: await page.screenshot() })
      await pause(60)
    }
  })()
  try {
    await act(page)
  } finally {
    over = true
    await filming
  }
  return shots.map((shot, index) => ({ ...shot, ms: (shots[index + 1]?.at ?? performance.now()) - shot.at }))
}

/** Each screenshot reduced to the rectangle that differs from the one before, encoded by the browser. */
async function encode(browser, shots) {
  const page = await browser.newPage()
  await page.evaluate((area) => {
    const canvas = new OffscreenCanvas(area.width, area.height)
    globalThis.context = canvas.getContext('2d', { willReadFrequently: true })
  }, size)
  const frames = []
  for (const { png, ms } of shots) {
    const frame = await page.evaluate(encodeDifference, { ...size, png: png.toString('base64') })
    const last = frames.at(-1)
    if (frame) frames.push({ ...frame, ms, webp: Buffer.from(frame.webp, 'base64') })
    else if (last) last.ms += ms
  }
  await page.close()
  return frames.map((frame) => ({ ...frame, ms: Math.round(frame.ms) }))
}

/** Runs in the page. Returns `undefined` if nothing differs. */
async function encodeDifference({ width, height, png }) {
  const toBytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))
  const { context } = globalThis
  const before = new Uint32Array(context.getImageData(0, 0, width, height).data.buffer)
  context.drawImage(await createImageBitmap(new Blob([toBytes(png)])), 0, 0)
  const after = new Uint32Array(context.getImageData(0, 0, width, height).data.buffer)
  let [left, top, right, bottom] = [width, height, -1, -1]
  for (let at = 0; at < after.length; at++) {
    if (before[at] === after[at]) continue
    const x = at % width
    left = Math.min(left, x)
    right = Math.max(right, x)
    top = Math.min(top, Math.floor(at / width))
    bottom = Math.floor(at / width)
  }
  if (right < 0) return undefined
  const area = { x: left - (left % 2), y: top - (top % 2) }
  const part = new OffscreenCanvas(right + 1 - area.x, bottom + 1 - area.y)
  part.getContext('2d').putImageData(context.getImageData(area.x, area.y, part.width, part.height), 0, 0)
  // 1 is lossless, which is often the smallest for text on a plain background
  const blobs = await Promise.all(
    [0.8, 1].map((quality) => part.convertToBlob({ type: 'image/webp', quality })),
  )
  const [smallest] = blobs.sort((a, b) => a.size - b.size)
  const bytes = new Uint8Array(await smallest.arrayBuffer())
  const webp = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(''))
  return { ...area, width: part.width, height: part.height, webp }
}

async function takeAnimation(browser) {
  await withPage(browser, { delay: 35, reducedMotion: 'reduce' }, async (page) => {
    const frames = await encode(browser, await film(page, converse))
    const file = animatedWebp({ ...size, frames })
    writeFileSync(join(images, 'conversation.webp'), file)
    const seconds = frames.reduce((sum, { ms }) => sum + ms, 0) / 1000
    console.log(`conversation.webp: ${frames.length} frames, ${seconds.toFixed(1)} s, ${file.length} bytes`)
  })
}

const every = [...Object.keys(stills), 'conversation']
const { positionals: wanted } = readArguments('pictures', { words: every })
mkdirSync(images, { recursive: true })
const browser = await chromium.launch({
  executablePath: findChromium(),
  args: [
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
  ],
})
try {
  const isWanted = (name) => wanted.length === 0 || wanted.includes(name)
  await takeStills(browser, Object.keys(stills).filter(isWanted))
  if (isWanted('conversation')) await takeAnimation(browser)
} finally {
  await browser.close()
}
