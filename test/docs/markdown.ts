import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '../..')

/** A fenced code block of a page. */
export interface Block {
  /** The page, relative to the root. */
  readonly page: string
  /** Of its first line of code, from 1. */
  readonly line: number
  readonly language: string
  /** The file it is, where the page names one behind the language. */
  readonly file: string | undefined
  /** Any other word behind the language: `run` and `test` are for the tests, the name of a framework for commands. */
  readonly mark: string | undefined
  readonly code: string
  /** What the comment `<!-- given ... -->` right before the block takes for granted: declarations that the reader has. */
  readonly given: string
}

/** Pages that a tool writes, at the time when it is run: not ours to check as code. */
const generated = new Set(['docs/performance.md', 'docs/interop-matrix.md'])

/** Every page that a reader finds: the root's, those of `docs`, and the README of each package. */
export function allPages(): readonly string[] {
  const inRoot = readdirSync(root).filter((file) => file.endsWith('.md'))
  const docs = readdirSync(join(root, 'docs')).filter((file) => file.endsWith('.md'))
  const packages = readdirSync(join(root, 'packages')).map((name) => `packages/${name}/README.md`)
  const apps = readdirSync(join(root, 'examples/apps')).map((name) => `apps/${name}`)
  const examples = [...readdirSync(join(root, 'examples')), ...apps].map(
    (name) => `examples/${name}/README.md`,
  )
  return [
    ...inRoot,
    'test/README.md',
    ...docs.map((file) => `docs/${file}`),
    ...packages,
    ...examples,
  ].filter(exists)
}

/** Those of them that somebody wrote. */
export function writtenPages(): readonly string[] {
  return allPages().filter((page) => !generated.has(page))
}

function exists(page: string): boolean {
  try {
    readPage(page)
    return true
  } catch {
    return false
  }
}

export function readPage(page: string): string {
  return readFileSync(join(root, page), 'utf8')
}

/** The fenced blocks of a page, in order. */
export function blocksOf(page: string): readonly Block[] {
  const text = readPage(page)
  const fenced = /(?:^<!-- given\n(?<given>[\s\S]*?)-->\n+)?^```(?<info>\S.*|)\n(?<code>[\s\S]*?)^```$/gm
  return [...text.matchAll(fenced)].map((found) => {
    const { given = '', info = '', code = '' } = found.groups ?? {}
    const [language = '', word] = info.split(' ')
    const named = word?.includes('.') ? { file: word, mark: undefined } : { file: undefined, mark: word }
    const begin = found.index + found[0].lastIndexOf(`\`\`\`${info}`)
    const line = text.slice(0, begin).split('\n').length + 1
    return { page, line, language, ...named, code, given }
  })
}

/** A page without its code, for reading its links and numbers. */
export function proseOf(page: string): string {
  return readPage(page)
    .replace(/<!--[\s\S]*?-->/g, '')
    .replace(/^```[\s\S]*?^```$/gm, '')
}

/** The anchor of a heading, as both GitHub and the site make it. */
export function anchorOf(heading: string): string {
  const text = heading.replace(/[`*_]/g, '').replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
  return text
    .toLowerCase()
    .replace(/[^\p{L}\p{N} -]/gu, '')
    .replaceAll(' ', '-')
}
