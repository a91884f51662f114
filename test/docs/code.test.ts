import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { complaintsOf, isCode, problemsIn, writeBlocks } from './code.js'
import { blocksOf, writtenPages } from './markdown.js'

const blocks = writtenPages().flatMap(blocksOf).filter(isCode)
let folder = ''
/** They work beside the compiler, each in a process of its own. */
let complaints: { readonly vue: Promise<string>; readonly svelte: Promise<string> }

beforeAll(() => {
  folder = writeBlocks(blocks)
  complaints = {
    vue: complaintsOf('vue-tsc', join(folder, 'vue')),
    svelte: complaintsOf('svelte-check', join(folder, 'svelte')),
  }
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))

test('no page shows a file twice', () => {
  const named = blocks.filter(({ file }) => file !== undefined).map(({ page, file }) => `${page} ${file}`)
  expect(named).toEqual([...new Set(named)])
})

test('every block in TypeScript or JavaScript compiles under strict settings, with React where it has elements', () => {
  expect(problemsIn(join(folder, 'react'))).toEqual([])
})

test('every block for Solid compiles', () => {
  expect(problemsIn(join(folder, 'solid'))).toEqual([])
})

test('every block for Vue passes the checker of Vue', async () => {
  expect(await complaints.vue).toBe('')
})

test('every block for Svelte passes the checker of Svelte', async () => {
  expect(await complaints.svelte).toBe('')
})
