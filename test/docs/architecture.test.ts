import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '../..')
const page = readFileSync(join(root, 'docs/architecture.md'), 'utf8')

/** The files of each walk, in order. */
const walks = page
  .split(/^## /m)
  .filter((section) => section.startsWith('Walk '))
  .map((section) => ({
    title: section.split('\n')[0] ?? '',
    files: [...section.matchAll(/^\| \d+ \| `([^`]+)`/gm)].map(([, file = '']) => `packages/${file}`),
  }))

/** The files that a file imports, through the index of a package where it imports that. */
function importsOf(file: string): ReadonlySet<string> {
  const found = new Set<string>()
  const source = readFileSync(join(root, file), 'utf8')
  for (const [, names = '', from = ''] of source.matchAll(
    /(?:import|export)\s+([^'"]*?)\s*from '([^']+)'/g,
  )) {
    if (from.startsWith('.')) found.add(join(dirname(file), from.replace(/\.js$/, '.ts')))
    const [, one] = /^@countersign\/(\w+)$/.exec(from) ?? []
    if (one === undefined) continue
    const index = `packages/${one}/src/index.ts`
    const wanted = names.match(/[\w$]+/g) ?? []
    const exported = readFileSync(join(root, index), 'utf8')
    for (const [, offered = '', source = ''] of exported.matchAll(/export\s+([^'"]*?)\s*from '([^']+)'/g))
      if (wanted.some((name) => name !== 'type' && offered.match(/[\w$]+/g)?.includes(name)))
        found.add(join(dirname(index), source.replace(/\.js$/, '.ts')))
  }
  return found
}

test('the page has two walks, of no more files than it says', () => {
  expect(walks.map(({ files }) => files.length)).toEqual([12, 13])
})

test.each(walks)(
  '$title: its files exist, each once, and each is connected by an import to one before it',
  ({ files }) => {
    expect(files.filter((file) => !existsSync(join(root, file)))).toEqual([])
    expect(new Set(files).size).toBe(files.length)
    const loose = files.slice(1).filter((file, at) => {
      const before = files.slice(0, at + 1)
      return !before.some((other) => importsOf(file).has(other) || importsOf(other).has(file))
    })
    expect(loose).toEqual([])
  },
)
