import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Block, blocksOf } from '../docs/markdown.js'
import { launchBrowser } from '../e2e/demo.js'
import { freePort } from './free-port.js'
import { type Framework, frameworks, type Newcomer, newcomer } from './newcomer.js'
import { type Registry, serveRegistry } from './registry.js'

/** `npm run newcomer -- vue` asks for one framework. */
const { NEWCOMER = 'all' } = process.env
const asked = frameworks.filter((framework) => NEWCOMER === 'all' || NEWCOMER === framework)

let registry: Registry
let browser: Browser

beforeAll(async () => {
  registry = await serveRegistry(['core', 'client', 'server', ...asked])
  browser = await launchBrowser()
})

afterAll(async () => {
  await browser?.close()
  registry?.close()
})

const pages = { start: 'docs/start.md', rendering: 'docs/server-rendering.md' }
const pageOf = (framework: Framework) => `docs/${framework}.md`

function commands(page: string, mark?: string): Block[] {
  return blocksOf(page).filter((block) => block.language === 'sh' && block.mark === mark)
}

for (const framework of asked) {
  test(`from an empty folder to an approved call in ${framework}, by the commands and the code of the pages`, async () => {
    const person = newcomer({ ...registry.env, PORT: String(await freePort()) })
    try {
      await followStart(person, framework)
      await followServerRendering(person, framework)
    } finally {
      await person.leave()
    }
  })
}

async function followStart(person: Newcomer, framework: Framework): Promise<void> {
  const [install, startServer] = commands(pages.start)
  const [installPage] = commands(pageOf(framework), framework)
  const [startPage] = commands(pages.start, 'page')
  if (!install || !startServer || !installPage || !startPage) throw new Error('The page has lost a command.')
  await person.type(install)
  await person.type(installPage)
  person.save(pages.start, framework)
  person.save(pageOf(framework), framework)
  await person.leaveRunning(startServer, /secret/)
  const draft = join(person.folder, 'draft.txt')
  expect(existsSync(draft)).toBe(true)
  const url = await person.leaveRunning(startPage, /http:\/\/localhost:\d+/)
  const page = await browser.newPage()
  try {
    await approveIn(page, url, () => existsSync(draft))
  } finally {
    await page.close()
  }
}

/** What a person sees and does. */
async function approveIn(page: Page, url: string, isThere: () => boolean): Promise<void> {
  const complaints: string[] = []
  page.on('pageerror', (error) => complaints.push(String(error)))
  await page.goto(url)
  await say(page, 'Delete the draft, please.')
  const question = page.getByRole('group', { name: 'May delete_file run?' })
  await question.waitFor()
  expect(await question.locator('pre').textContent()).toBe('{\n  "path": "draft.txt"\n}')
  expect(await question.getByRole('button').allInnerTexts()).toEqual(['Cancel', 'Approve Once'])
  expect(isThere()).toBe(true)
  await question.getByRole('button', { name: 'Approve Once' }).click()
  await page.getByText('The draft is deleted.').waitFor()
  expect(isThere()).toBe(false)
  expect(await question.count()).toBe(0)
  // while a reply is on its way, here for ever
  await page.route('**/api/chat', () => {})
  await say(page, 'Delete the next one.')
  await say(page, 'No, stop.')
  await page.getByText('Not sent yet: No, stop.').waitFor()
  expect(complaints).toEqual([])
}

async function say(page: Page, text: string): Promise<void> {
  await page.getByRole('textbox', { name: 'Message' }).fill(text)
  await page.getByRole('button', { name: 'Send' }).click()
}

async function followServerRendering(person: Newcomer, framework: Framework): Promise<void> {
  const [render] = commands(pages.rendering)
  if (!render) throw new Error('The page has lost a command.')
  person.save(pages.rendering, framework)
  const html = (await person.type(render)).replace(/<!--.*?-->/g, '').replaceAll('&quot;', '"')
  expect(html).toContain('May delete_file run with {"path":"draft.txt"}?')
}
