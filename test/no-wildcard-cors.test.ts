import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '..')

/** The ways in which a server lets every page of the web read its answers. */
const wildcards: readonly RegExp[] = [
  /access-control-allow-origin['"`]?\s*[:,=]\s*['"`]?\*/i,
  /\borigins?\s*:\s*['"`](?:\*|any)['"`]/,
  // a CORS middleware without its list of origins allows all
  /\bcors\(\s*\)/,
]

const isWild = (text: string) => wildcards.some((pattern) => pattern.test(text))

/** Whatever people copy from, as it is checked in; built files and installed ones are no one's example. */
function shown(): string[] {
  const top = readdirSync(root).filter((file) => file.endsWith('.md'))
  const guides = readdirSync(join(root, 'packages')).map((name) => join('packages', name, 'README.md'))
  const files = [
    ...top,
    ...guides.filter((file) => existsSync(join(root, file))),
    ...below('docs'),
    ...below('examples'),
  ]
  return files.filter((file) => /\.(?:md|ts|mts|tsx|vue|svelte|html)$/.test(file))
}

function below(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (/^(?:node_modules|dist|cache)$/.test(entry.name)) return []
    return entry.isDirectory() ? below(path) : [path]
  })
}

test('a wildcard is known where it is seen', () => {
  const wild = [
    "response.setHeader('Access-Control-Allow-Origin', '*')",
    "headers: { 'access-control-allow-origin': '*' }",
    'Access-Control-Allow-Origin: *',
    "cors({ origin: '*' })",
    'app.use(cors())',
    "toNodeAnswerHandler(agent, { context, origins: 'any' })",
  ]
  expect(wild.filter((text) => !isWild(text))).toEqual([])
  const named = [
    "{ 'access-control-allow-origin': origin }",
    'cors({ origin: [...origins], credentials: true })',
  ]
  expect(named.filter(isWild)).toEqual([])
})

test('no example and no page of the documentation opens a server to every origin', () => {
  const files = shown()
  expect(files).toContain(join('examples', 'routes', 'src', 'express.ts'))
  expect(files).toContain(join('docs', 'security.md'))
  expect(files.filter((file) => isWild(readFileSync(join(root, file), 'utf8')))).toEqual([])
})
