import { rmSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { full } from '../full.js'
import { complaintsAbout, isCode, writeBlocks } from './code.js'
import { blocksOf, writtenPages } from './markdown.js'

const blocks = writtenPages().flatMap(blocksOf).filter(isCode)
let folder = ''

beforeAll(() => {
  folder = writeBlocks(blocks)
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('no page shows a file twice', () => {
  const named = blocks.filter(({ file }) => file !== undefined).map(({ page, file }) => `${page} ${file}`)
  expect(named).toEqual([...new Set(named)])
})

test.concurrent.for([
  ['in TypeScript or JavaScript, with React where it has elements', 'react'],
  ['for Solid', 'solid'],
  ...(full
    ? ([
        ['for Vue', 'vue'],
        ['for Svelte', 'svelte'],
      ] as const)
    : []),
] as const)('every block %s compiles under strict settings', async ([, framework], { expect }) => {
  expect(await complaintsAbout(framework, folder)).toBe('')
})
