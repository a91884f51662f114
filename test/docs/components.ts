import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { afterAll, afterEach } from 'vitest'
import { type Block, blocksOf } from './markdown.js'

const parent = join(import.meta.dirname, '../.verify')

/** The component and its test that the page about testing shows for a framework. */
export function blocksFor(framework: string): readonly Block[] {
  return blocksOf('docs/testing.md').filter(({ file }) => file?.startsWith(`${framework}/`))
}

export function isTest({ file = '' }: Block): boolean {
  return file.includes('.test.')
}

/** Registers the test of a component that the page shows, as it is written there. Call it in the project of that framework. */
export async function loadComponentTest(framework: string): Promise<void> {
  mkdirSync(parent, { recursive: true })
  const folder = mkdtempSync(join(parent, `${framework}-`))
  afterAll(() => rmSync(folder, { recursive: true, force: true }))
  afterEach(() => document.body.replaceChildren())
  const at = ({ file = '' }: Block) => join(folder, basename(file))
  for (const block of blocksFor(framework)) writeFileSync(at(block), block.code)
  for (const block of blocksFor(framework).filter(isTest)) await import(at(block))
}
