import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '..')

function filesUnder(folder: string, ending: RegExp): readonly string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => ending.test(file))
    .map((file) => join(folder, file))
}

const read = (file: string) => readFileSync(join(root, file), 'utf8')
const packages = readdirSync(join(root, 'packages'))
const sources = /\.(?:tsx?|svelte|vue)$/

/** Lines of sources, at most. They are to become 9,000, 9,500, and 250 for each binding. */
const limits = { 'core client': 17_462, server: 22_703, react: 250, solid: 300, vue: 380, svelte: 340 }

test.each(Object.entries(limits))('the sources of %s have at most %i lines', (names, most) => {
  const files = names.split(' ').flatMap((name) => filesUnder(`packages/${name}/src`, sources))
  const lines = files.reduce((sum, file) => sum + read(file).split('\n').length - 1, 0)
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
    ...packages
      .filter((name) => name !== 'core')
      .flatMap((name) => filesUnder(`packages/${name}/src`, sources)),
    ...readdirSync(join(root, 'examples'))
      .filter((name) => name !== 'apps' && name !== 'registry')
      .flatMap((name) => filesUnder(`examples/${name}/src`, sources)),
    ...readdirSync(join(root, 'docs')).flatMap((page) => (page.endsWith('.md') ? [`docs/${page}`] : [])),
    'README.md',
  ]
  const words = new Set(users.flatMap((file) => read(file).match(/[\w$]+/g) ?? []))
  const values = exported.filter((name) => name !== '' && !name.startsWith('type '))
  expect(values.length).toBeGreaterThan(50)
  expect(values.filter((name) => !words.has(name))).toEqual([])
})
