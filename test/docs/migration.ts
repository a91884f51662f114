import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { scriptedModel } from '@countersign/server'
import { vi } from 'vitest'
import { type Block, blocksOf } from './markdown.js'

// inside `test`, so that a block imports the peers that `test/package.json` names
const parent = join(import.meta.dirname, '../.verify')
mkdirSync(parent, { recursive: true })
export const folder = mkdtempSync(join(parent, 'migrated-'))

let loaded = 0

export const removed: string[] = []

/** What the blocks of the pages about migration declare as given. */
export const given = {
  model: scriptedModel(({ messages }) =>
    messages.at(-1)?.role === 'tool'
      ? [
          { type: 'text-delta', delta: 'It is gone.' },
          { type: 'finish', reason: 'stop' },
        ]
      : [
          { type: 'tool-call', id: '1', name: 'delete_file', arguments: '{"path":"draft.txt"}' },
          { type: 'finish', reason: 'tool_calls' },
        ],
  ),
  removeFile: async (path: string) => void removed.push(path),
  userId: async () => 'ann',
}

/** Runs a block as it is written, with what it takes for granted, and `more` behind it. */
export async function load({ page, line, language, code }: Block, things: object = given, more = '') {
  mkdirSync(folder, { recursive: true })
  const file = join(folder, `${page.replaceAll('/', '-')}-${line}-${++loaded}.${language}`)
  vi.stubGlobal('migration', things)
  writeFileSync(file, `const { ${Object.keys(things)} } = globalThis.migration\n${code}\n${more}`)
  return await import(file)
}

/** The block of a page with this in its code. */
export function blockWith(page: string, text: string): Block {
  const block = blocksOf(page).find(({ code }) => code.includes(text))
  if (!block) throw new Error(`${page} has no "${text}"`)
  return block
}
