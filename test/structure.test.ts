import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { packages } from '../scripts/packages.mjs'

const root = join(import.meta.dirname, '..')

function filesUnder(folder: string, ending: RegExp): readonly string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => ending.test(file))
    .map((file) => join(folder, file))
}

const read = (file: string) => readFileSync(join(root, file), 'utf8')
const names = packages.map(({ name }) => name)
const linesOf = (files: readonly string[]) =>
  files.reduce((sum, file) => sum + read(file).split('\n').length - 1, 0)
const sources = /\.(?:tsx?|svelte|vue)$/

/** Lines of sources, at most. They are to become 9,000, 9,500, and 250 for each binding. */
const limits = { 'core client': 20_626, server: 24_660, react: 250, solid: 300, vue: 380, svelte: 340 }

const frameworks = ['react', 'solid', 'svelte', 'vue']

/** Lines of an example page, at most: what is its own. Everything that another page needs too is in `packages/registry`. */
const mostLinesOfPage = 600

test.each(frameworks)('the sources of the %s page have at most 600 lines', (name) => {
  const lines = linesOf(filesUnder(`examples/${name}/src`, sources))
  console.info(`${name} page: ${lines} lines of ${mostLinesOfPage}`)
  expect(lines).toBeLessThanOrEqual(mostLinesOfPage)
})

test.each(Object.entries(limits))('the sources of %s have at most %i lines', (names, most) => {
  const files = names.split(' ').flatMap((name) => filesUnder(`packages/${name}/src`, sources))
  const lines = linesOf(files)
  console.info(`${names}: ${lines} lines of ${most}`)
  expect(lines).toBeLessThanOrEqual(most)
})

test('every function and value that core exports is used by another package, an example or a page of the docs', () => {
  const exported = ['index', 'ag-ui'].flatMap((entry) =>
    [...read(`packages/core/src/${entry}.ts`).matchAll(/export (type )?\{([^}]*)\}/g)].flatMap(
      ([, isType, names = '']) => (isType ? [] : names.split(',').map((name) => name.trim())),
    ),
  )
  const users = [
    ...names.filter((name) => name !== 'core').flatMap((name) => filesUnder(`packages/${name}/src`, sources)),
    ...readdirSync(join(root, 'examples'))
      .filter((name) => name !== 'apps')
      .flatMap((name) => filesUnder(`examples/${name}/src`, sources)),
    ...frameworks.flatMap((name) => filesUnder(`packages/registry/${name}`, sources)),
    ...readdirSync(join(root, 'docs')).flatMap((page) => (page.endsWith('.md') ? [`docs/${page}`] : [])),
    'README.md',
  ]
  const words = new Set(users.flatMap((file) => read(file).match(/[\w$]+/g) ?? []))
  const values = exported.filter((name) => name !== '' && !name.startsWith('type '))
  expect(values.length).toBeGreaterThan(50)
  expect(values.filter((name) => !words.has(name))).toEqual([])
})
