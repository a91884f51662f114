import { existsSync, statSync } from 'node:fs'
import { basename, dirname, extname, join, normalize } from 'node:path'
import { expect, test } from 'vitest'
import { packages } from '../../scripts/packages.mjs'
import { allPages, anchorOf, blocksOf, proseOf, readPage } from './markdown.js'

const root = join(import.meta.dirname, '../..')

/** Pages that a command writes: a link to one holds also where the command was not run yet. */
const written = new Map([
  ['docs/performance.md', 'bench'],
  ['docs/interop-matrix.md', 'interop'],
  ['docs/compare.md', 'compare'],
])

interface Link {
  readonly page: string
  readonly target: string
}

/** Links and pictures in Markdown and in HTML. */
function linksOf(page: string): readonly Link[] {
  const prose = proseOf(page).replace(/`[^`\n]*`/g, '')
  const targets = [...prose.matchAll(/\]\(([^)\s]+)\)|(?:src|srcset|href)="([^"]+)"/g)]
  return targets.map(([, markdown, html]) => ({ page, target: markdown ?? html ?? '' }))
}

/** The anchors of a page's headings. */
function anchorsOf(page: string): ReadonlySet<string> {
  const headings = [...proseOf(page).matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = '']) => heading)
  return new Set(headings.map(anchorOf))
}

function isLocal({ target }: Link): boolean {
  return !/^[a-z]+:/.test(target)
}

/** Why a link leads nowhere; `undefined` where it leads somewhere. */
function problemOf({ page, target }: Link): string | undefined {
  const [path = '', anchor] = target.split('#')
  const file = path === '' ? page : normalize(join(dirname(page), path)).replace(/\/$/, '')
  if (written.has(file)) return undefined
  if (!existsSync(join(root, file))) return `${page}: there is no ${file}`
  if (anchor === undefined || !file.endsWith('.md')) return undefined
  return anchorsOf(file).has(anchor) ? undefined : `${page}: ${file} has no heading #${anchor}`
}

const links = allPages().flatMap(linksOf)

test('every relative link and every anchor of a page leads somewhere', () => {
  expect(links.filter(isLocal).length).toBeGreaterThan(40)
  expect(links.filter(isLocal).flatMap((link) => problemOf(link) ?? [])).toEqual([])
})

test('no page leads to an address that is not secure', () => {
  expect(links.filter(({ target }) => target.startsWith('http:'))).toEqual([])
})

test('a README that is packed links to nothing outside of its package', () => {
  const published = packages.map(({ name }) => `packages/${name}/README.md`)
  const packed = links.filter(({ page }) => published.includes(page))
  const outside = packed.filter(isLocal).filter(({ target }) => target.startsWith('..'))
  expect(outside).toEqual([])
})

test('every page of the site is reached from its navigation, and has one title', () => {
  const config = readPage('docs/.vitepress/config.mts')
  const pages = allPages().filter((page) => page.startsWith('docs/') && statSync(join(root, page)).isFile())
  for (const page of pages.filter((page) => page !== 'docs/index.md')) {
    expect(config, page).toContain(`'/${page.slice('docs/'.length, -'.md'.length)}'`)
    expect([...proseOf(page).matchAll(/^# /gm)].length, page).toBe(1)
  }
})

test('the commands that a page names exist', () => {
  const { scripts } = JSON.parse(readPage('package.json'))
  const builtIn = new Set(['install', 'test', 'start', 'init', 'pkg', 'create', 'exec'])
  const named = allPages().flatMap((page) =>
    [...readPage(page).matchAll(/`(?:npm|pnpm) (?:run )?([a-z][a-z:]*)/g)].map(([, name = '']) => ({
      page,
      name,
    })),
  )
  expect(named.filter(({ name }) => !(name in scripts) && !builtIn.has(name))).toEqual([])
  for (const command of written.values()) expect(scripts).toHaveProperty(command)
})

/** The files that the code of a page imports and that the page shows. */
function importedOn(page: string): readonly string[] {
  const blocks = blocksOf(page)
  const stemOf = (file: string) => basename(file, extname(file))
  const imported = blocks.flatMap(({ code, given }) =>
    [...`${given}${code}`.matchAll(/from '\.{1,2}\/([^']+)'/g)].map(([, file = '']) => stemOf(file)),
  )
  return blocks.flatMap(({ file = '' }) => (imported.includes(stemOf(file)) ? basename(file) : []))
}

test('a page names the files that its code imports: a reader does not see what stands behind the language of a block', () => {
  const unnamed = allPages().flatMap((page) =>
    importedOn(page).flatMap((file) => (proseOf(page).includes(`${file}\``) ? [] : `${page}: ${file}`)),
  )
  expect([...new Set(unnamed)]).toEqual([])
})
