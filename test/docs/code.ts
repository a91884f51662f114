import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Block } from './markdown.js'

const root = join(import.meta.dirname, '../..')

const frameworks = ['react', 'solid', 'vue', 'svelte'] as const
type Framework = (typeof frameworks)[number]

/** The code blocks that are compiled, by language. */
const compiled = new Set(['ts', 'tsx', 'js', 'jsx', 'vue', 'svelte'])

/** Whether a block is compiled here. An application's files are checked in the application, which `npm run apps` installs. */
export function isCode({ language, file = '' }: Block): boolean {
  return compiled.has(language) && !file.startsWith('examples/apps/')
}

/** Which framework's compiler reads a block; `undefined` for a file that a page shows for all of its frameworks. */
function frameworkOf({ page, file = '', language, code, given }: Block): Framework | undefined {
  const named = frameworks.find((one) => file.startsWith(`${one}/`) || language === one)
  const owner = frameworks.find((one) => page.startsWith(`packages/${one}/`))
  const used = frameworks.find((one) => `${given}${code}`.includes(`@countersign/${one}'`))
  return named ?? owner ?? used
}

/**
 * Writes the blocks as files, a folder for each framework and in it one for each page. They lie inside the workspace, so that a block
 * imports the built packages, as a user would, and the peers that `test/package.json` names. Returns the folder.
 */
export function writeBlocks(blocks: readonly Block[]): string {
  const parent = join(root, 'test/.verify')
  mkdirSync(parent, { recursive: true })
  const folder = mkdtempSync(join(parent, 'docs-'))
  for (const framework of frameworks) writeConfig(join(folder, framework), framework)
  for (const block of blocks) {
    const others = blocks.filter(({ page }) => page === block.page).map(frameworkOf)
    const shared = frameworks.filter((framework) => others.includes(framework))
    const own = frameworkOf(block) ?? (block.file !== undefined && shared.length > 0 ? shared : 'react')
    for (const framework of [own].flat()) writeBlock(join(folder, framework), block, framework)
  }
  return folder
}

function writeBlock(
  folder: string,
  { page, line, file, language, code, given }: Block,
  framework: Framework,
) {
  const slug = page.replace(/\.md$/, '').replaceAll('/', '-')
  const path = join(folder, slug, file?.replace(`${framework}/`, '') ?? `line-${line}.${language}`)
  mkdirSync(dirname(path), { recursive: true })
  // a block without imports is a module all the same
  const isScript = /^(ts|tsx|js|jsx)$/.test(language)
  writeFileSync(path, isScript ? `${given}${code}\nexport {}\n` : withGiven(code, given))
}

/** What is given goes where the script begins. */
function withGiven(code: string, given: string): string {
  return given === '' ? code : code.replace(/^(<script.*>\n)/m, (script) => `${script}${given}`)
}

const jsx = { react: {}, vue: {}, svelte: {}, solid: { jsx: 'preserve', jsxImportSource: 'solid-js' } }

function writeConfig(folder: string, framework: Framework): void {
  const compilerOptions = {
    paths: {
      // a package of the React example
      '@vitejs/plugin-react': [
        join(root, 'examples/react/node_modules/@vitejs/plugin-react/dist/index.d.ts'),
      ],
      // where the shadcn command copies the components to
      '@/components/*': [join(root, 'packages/registry/react/*')],
    },
    types: ['node', 'vite/client'],
    jsx: 'react-jsx',
    allowJs: true,
    checkJs: true,
    allowImportingTsExtensions: true,
    ...jsx[framework],
  }
  mkdirSync(folder, { recursive: true })
  const config = { extends: '../../../../tsconfig.base.json', compilerOptions, include: ['**/*'] }
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(config))
}

const tsc = 'scripts/node_modules/typescript/bin/tsc'
const checkers = {
  react: [tsc, '-p', 'tsconfig.json'],
  solid: [tsc, '-p', 'tsconfig.json'],
  vue: ['examples/vue/node_modules/vue-tsc/bin/vue-tsc.js', '-p', 'tsconfig.json'],
  svelte: [
    'examples/svelte/node_modules/svelte-check/bin/svelte-check',
    ...['--tsconfig', 'tsconfig.json', '--output', 'machine'],
  ],
}

/** What the checker of a framework's files prints about its blocks, in a process of its own; `''` where it finds nothing wrong. */
export function complaintsAbout(framework: Framework, folder: string): Promise<string> {
  const [checker = '', ...args] = checkers[framework]
  return new Promise((resolve) => {
    const options = { cwd: join(folder, framework) }
    execFile(process.execPath, [join(root, checker), ...args], options, (error, stdout, stderr) =>
      resolve(error ? stdout + stderr : ''),
    )
  })
}
