import { readFileSync } from 'node:fs'
import { extname, join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { expect } from 'vitest'
import { serve } from './fresh.js'

const types: Record<string, string> = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css' }

/**
 * Opens the built page in `folder` (`page/server.ts` is its server), denies a request with a reason, approves one in the dialog and one
 * with an edit, and looks at what the server was told.
 */
export async function usePage(browser: Browser, folder: string): Promise<void> {
  const site = await serve(({ url = '/' }, response) => {
    const file = url === '/' ? '/index.html' : decodeURIComponent(new URL(url, 'http://localhost').pathname)
    try {
      const body = readFileSync(join(folder, file))
      response.writeHead(200, { 'content-type': types[extname(file)] ?? 'text/plain' }).end(body)
    } catch {
      response.writeHead(file === '/favicon.ico' ? 204 : 404).end()
    }
  })
  const page = await browser.newPage()
  const complaints: string[] = []
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(String(error)))
  try {
    await page.goto(site.url)
    await deny(page)
    await approve(page)
    await edit(page)
    expect(complaints).toEqual([])
  } finally {
    await page.close()
    site.close()
  }
}

/** Waits until the server says what it was answered. The live region says so too. */
const told = (page: Page, answer: string) =>
  page.locator('main > p', { hasText: 'answered: ' }).filter({ hasText: answer }).waitFor()

/** The card of a new request. */
async function ask(page: Page) {
  await page.getByRole('button', { name: 'Ask' }).click()
  const card = page.getByRole('region', { name: 'write_file' }).last()
  await card.getByText('Waiting for you').waitFor()
  return card
}

async function deny(page: Page) {
  const card = await ask(page)
  expect(await card.getByRole('definition').allInnerTexts()).toEqual(['door.txt', 'Back at noon.'])
  const white = await card
    .locator('bdi')
    .first()
    .evaluate((text) => getComputedStyle(text).whiteSpace)
  expect(white).toBe('pre-wrap')
  await card.getByText('A file of that name is replaced.').waitFor()
  expect(await card.getByRole('button').allInnerTexts()).toEqual([
    'Approve once',
    'Edit…',
    'Deny',
    'Deny with a reason…',
  ])
  await card.getByRole('button', { name: 'Deny with a reason…' }).click()
  await card.getByRole('textbox', { name: 'Reason' }).fill('Mara needs it')
  await card.getByRole('button', { name: 'Deny', exact: true }).click()
  await told(page, '{"approved":false,"reason":"Mara needs it"}')
}

async function approve(page: Page) {
  await ask(page)
  await page.getByText('One request is waiting for you').waitFor()
  await page.getByRole('button', { name: 'One by one…' }).click()
  const dialog = page.getByRole('dialog', { name: 'write_file' })
  await dialog.getByRole('button', { name: 'Approve' }).click()
  await told(page, '{"approved":true')
  expect(await page.getByRole('dialog').count()).toBe(0)
}

async function edit(page: Page) {
  const card = await ask(page)
  await card.getByRole('button', { name: 'Edit…' }).click()
  const content = card.getByRole('textbox', { name: 'content' })
  expect(await card.getByRole('textbox', { name: 'path' }).getAttribute('readonly')).not.toBeNull()
  await content.fill('')
  await card.getByRole('button', { name: 'Approve with changes' }).click()
  await card.getByText('Write something.').waitFor()
  expect(await content.evaluate((field) => field === document.activeElement)).toBe(true)
  await content.fill('Back at one.')
  await card.getByRole('button', { name: 'Approve with changes' }).click()
  await told(page, '"content":"Back at one."')
  await card.getByText('You approved this with changes').waitFor()
}
