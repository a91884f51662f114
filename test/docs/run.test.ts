import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { format } from 'node:util'
import { afterAll, expect, test, vi } from 'vitest'
import { type Block, blocksOf, writtenPages } from './markdown.js'

const parent = join(import.meta.dirname, '../../.verify')
mkdirSync(parent, { recursive: true })
const folder = mkdtempSync(join(parent, 'run-'))
const blocks = writtenPages().flatMap(blocksOf)

afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Loads a block as a module: a program runs, and a test is registered. */
function load({ page, line, language, given, code }: Block): Promise<unknown> {
  const file = join(folder, `${page.replaceAll('/', '-')}-${line}.${language}`)
  writeFileSync(file, `${given}${code}`)
  return import(file)
}

/** What a program says that it prints: the comments behind, or right below, its `console.log`. */
function promised(code: string): readonly string[] {
  return [...code.matchAll(/console\.log\(.*\)\s*\/\/ (.*)$/gm)].map(([, said = '']) => said)
}

/** A comment is one line; what is printed may break after a bracket. */
function inOneLine(text: string): string {
  return text.replace(/\s+/g, ' ')
}

for (const block of blocks.filter(({ mark }) => mark === 'run')) {
  test(`${block.page}:${block.line} prints what its comments say`, async () => {
    const printed: string[] = []
    const log = vi
      .spyOn(console, 'log')
      .mockImplementation((...args) => printed.push(inOneLine(format(...args))))
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => {})
    try {
      await load(block)
    } finally {
      log.mockRestore()
      warn.mockRestore()
    }
    expect(promised(block.code).length).toBeGreaterThan(0)
    expect(printed).toEqual(promised(block.code))
  })
}

// the tests that the pages show, as tests of this file
for (const block of blocks.filter(({ mark }) => mark === 'test')) await load(block)
