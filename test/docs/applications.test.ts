import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { blocksOf, readPage, writtenPages } from './markdown.js'

const root = join(import.meta.dirname, '../..')

/** What the command that creates a new project writes, and what belongs to this repository. */
const given =
  /^(?:package(?:-lock)?\.json|(?:\w+\/)?tsconfig\.json|README\.md|app\/layout\.tsx|src\/(?:app\.html|app\.tsx|entry-\w+\.tsx)|(?:vite|svelte)\.config\.\w+)$/

/** The files of an application, as its repository has them: without what is installed or built. */
function filesOf(app: string, folder = ''): readonly string[] {
  return readdirSync(join(root, app, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.name.startsWith('.') || entry.name === 'node_modules') return []
    return entry.isDirectory() ? filesOf(app, path) : [path]
  })
}

/** Each guide that shows files of an application, with that application's folder. */
const guides = writtenPages().flatMap((page) => {
  const apps = blocksOf(page).map(({ file = '' }) => /^examples\/apps\/\w+/.exec(file)?.[0])
  const named = new Set(apps.filter((app) => app !== undefined && existsSync(join(root, app))))
  return [...named].map((app) => ({ page, app: String(app) }))
})

test('a guide shows or names every file of its application that a new project of the framework lacks', () => {
  expect(guides.length).toBeGreaterThan(4)
  const missing = guides.flatMap(({ page, app }) => {
    const text = readPage(page)
    return filesOf(app)
      .filter((file) => !given.test(file) && !text.includes(file))
      .map((file) => `${page}: ${file}`)
  })
  expect(missing).toEqual([])
})
