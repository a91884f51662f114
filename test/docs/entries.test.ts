import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { proseOf, readPage, writtenPages } from './markdown.js'

const api: Readonly<Record<string, readonly string[]>> = JSON.parse(
  readFileSync(join(import.meta.dirname, '../api.json'), 'utf8'),
)
/** The main entries of the packages have no slash: `client`, but `client/tabs`. */
const fromMain = new Set(Object.entries(api).flatMap(([entry, names]) => (entry.includes('/') ? [] : names)))

/** The entries that have a function; none if a package's main entry has it, or if the name is that of something else. */
function entriesOf(name: string): readonly string[] {
  if (fromMain.has(name)) return []
  return Object.keys(api).filter((entry) => api[entry]?.includes(name))
}

test('a guide that names a function also names the entry to import it from, unless that is the main one', () => {
  const guides = writtenPages().filter(
    (page) => page.startsWith('docs/') && !page.endsWith('/architecture.md'),
  )
  const unnamed = guides.flatMap((page) => {
    const text = readPage(page)
    const names = [...proseOf(page).matchAll(/`([a-z]\w+)(?:\([^`]*\))?`/g)].map(([, name = '']) => name)
    return [...new Set(names)].flatMap((name) => {
      const entries = entriesOf(name)
      const named = entries.length === 0 || entries.some((entry) => text.includes(`@countersign/${entry}`))
      return named ? [] : [`${page}: ${name} of ${entries.join(' or ')}`]
    })
  })
  expect(unnamed).toEqual([])
})
