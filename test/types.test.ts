import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { tsc } from '../scripts/tsc.mjs'

const root = join(import.meta.dirname, '..')

/** What the type checker alone reads, and the lines of the specification that hold when it finds nothing wrong there. */
const readByTheChecker = {
  'packages/core/test/types.test-d.ts':
    'S4.33-S4.36 the shapes of messages, calls, approvals and snapshots; F55 H29 of tools that only throw, and of the subject',
  'packages/server/test/prompt.test-d.ts':
    'S0.17-S0.18 S0.22-S0.24 the parts of prompts and the unions they belong to',
  'packages/core/test/tools-streaming.test-d.ts': 'the types of tools that stream',
  'packages/server/test/types.test-d.ts':
    'S0.1 S0.10 S0.15 S3.1-S3.4 S3.50 approval of tools, its decisions, scopes and policies',
  'packages/react/test/types.test-d.ts': 'H29 useChat of React, typed by its tools',
  'packages/solid/test/types.test-d.tsx': 'H29 useChat of Solid, typed by its tools',
  'packages/vue/test/types.test-d.ts': 'H29 useChat of Vue, typed by its tools',
  'packages/svelte/test/types.test-d.ts': 'H29 createChat of Svelte, typed by its tools',
}

let folder = ''
let found: readonly string[] = []

/** One program for all of them: what they share is read once. */
beforeAll(async () => {
  mkdirSync(join(root, 'test/.verify'), { recursive: true })
  folder = mkdtempSync(join(root, 'test/.verify/types-'))
  const files = Object.keys(readByTheChecker).map((file) => join(root, file))
  const config = { extends: join(root, 'tsconfig.json'), include: [], files }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
  const { status, output } = await tsc('-p', folder)
  found = status === 0 ? [] : output.split('\n')
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))

for (const [file, what] of Object.entries(readByTheChecker)) {
  test(`${what}, to the type checker`, () => {
    expect(found.filter((line) => line.startsWith(file))).toEqual([])
  })
}

test('the type checker has read these files, and finds nothing wrong in what they import', () => {
  expect(found).toEqual([])
})
