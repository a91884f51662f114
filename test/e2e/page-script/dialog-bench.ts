import { expect } from 'vitest'
import type { ChatPage } from '../demo.js'
import type { Demo } from './bench.js'

/** The dialog as a person sees it. */
export function dialogOf({ page }: ChatPage) {
  const dialog = page.getByRole('dialog')
  // A button is named after its label and what it answers.
  const button = (label: string) => dialog.getByText(label, { exact: true })
  return {
    dialog,
    button,
    title: dialog.locator('.dialog-title'),
    count: dialog.locator('.dialog-count'),
    text: dialog.locator('.arguments'),
    choices: () => dialog.locator('.approval-choices button').allInnerTexts(),
    /** Waits until a request with this text is shown. */
    shows: (text: string) => dialog.filter({ hasText: text }).waitFor(),
    gone: () => dialog.waitFor({ state: 'detached' }),
    open: async () => {
      await page.getByRole('button', { name: 'One by one…' }).click()
      await dialog.waitFor()
    },
  }
}

/** Asks for something, and opens the dialog when all of it was asked. */
export async function asked(demo: Demo, text: string) {
  await demo.send(text)
  await demo.page.locator('.pending-bar').waitFor()
  await demo.settled()
  const shown = dialogOf(demo)
  await shown.open()
  return shown
}

/** The words of what has the focus; empty where that is outside the dialog. */
export const focusInDialog = ({ page }: ChatPage) =>
  page.evaluate(() => document.activeElement?.closest('dialog') && document.activeElement.textContent)

export const composerHasFocus = ({ page }: ChatPage) =>
  expect.poll(() => page.evaluate(() => document.activeElement?.id)).toBe('composer-input')

/** What is asked of two requests at once. */
export const both = 'delete notes.txt and todo.md'
