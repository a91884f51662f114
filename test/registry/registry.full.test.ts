import { cpSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, test } from 'vitest'
import { launchBrowser } from '../e2e/demo.js'
import { type Registry, serveRegistry } from '../newcomer/registry.js'
import { compilerOptions, freshApp, indexOf, serve } from './fresh.js'
import { items, registryFolder, served } from './items.js'
import { usePage } from './use-page.js'

const root = join(import.meta.dirname, '../..')
const shadcn = 'shadcn@4.23.0'

/** The packages of an example that belong to its framework, and how it is built. */
function versionsOf(folder: string): Record<string, string> {
  const { dependencies, devDependencies } = JSON.parse(
    readFileSync(join(root, folder, 'package.json'), 'utf8'),
  )
  const all: [string, string][] = Object.entries({ ...dependencies, ...devDependencies })
  const wanted =
    /^(?:react|react-dom|next|vite|typescript|vue|vue-tsc|svelte|svelte-check|solid-js|vite-plugin-solid|@types\/.+|@vitejs\/.+|@sveltejs\/vite.+)$/
  return Object.fromEntries(all.filter(([name]) => wanted.test(name)))
}

/** What a fresh application consists of, before anything of the registry is in it. `out` is where its pages are built. */
interface Fresh {
  readonly versions: Readonly<Record<string, string>>
  readonly source: string
  readonly out: string
  readonly build: readonly (readonly string[])[]
  readonly files: Readonly<Record<string, string>>
}

const reactApps: Readonly<Record<string, Fresh>> = {
  Vite: {
    versions: versionsOf('examples/apps/express'),
    source: 'src',
    out: 'dist',
    build: [['tsc'], ['vite', 'build']],
    files: {
      'index.html': indexOf('main.tsx'),
      'src/main.tsx':
        "import { createRoot } from 'react-dom/client'\nimport '../index.css'\nimport { Demo } from './demo'\nconst root = document.getElementById('root')\nif (root) createRoot(root).render(<Demo />)\n",
      'vite.config.js':
        "import react from '@vitejs/plugin-react'\nexport default { plugins: [react()], resolve: { tsconfigPaths: true } }\n",
      'tsconfig.json': JSON.stringify({
        compilerOptions: { ...compilerOptions, jsx: 'react-jsx', paths: { '@/*': ['./src/*'] } },
        include: ['src'],
      }),
    },
  },
  'Next.js': {
    versions: versionsOf('examples/apps/next'),
    source: '.',
    out: 'out',
    // it checks types as part of its build
    build: [['next', 'build']],
    files: {
      'app/layout.tsx':
        'import \'../index.css\'\nexport default ({ children }: { children: React.ReactNode }) => <html lang="en"><body>{children}</body></html>\n',
      'app/page.tsx': "import { Demo } from '@/demo'\nexport default () => <Demo />\n",
      'next.config.mjs': "export default { output: 'export' }\n",
      'tsconfig.json': JSON.stringify({
        compilerOptions: { ...compilerOptions, types: [], jsx: 'react-jsx', paths: { '@/*': ['./*'] } },
        include: ['**/*.ts', '**/*.tsx'],
        exclude: ['node_modules'],
      }),
    },
  },
}

const vite = (plugin: string, from: string) =>
  `import ${plugin.replace(/\W.*/, '')} from '${from}'\nexport default { plugins: [${plugin}] }\n`
const { typescript = '' } = versionsOf('.')

/** Of the others the files are copied into `src/parts`. */
const otherApps: Readonly<Record<string, Fresh>> = {
  vue: {
    versions: { ...versionsOf('examples/vue'), typescript },
    source: 'src',
    out: 'dist',
    build: [['vue-tsc'], ['vite', 'build']],
    files: {
      'index.html': indexOf('main.ts'),
      'vite.config.js': vite('vue()', '@vitejs/plugin-vue'),
      'tsconfig.json': JSON.stringify({ compilerOptions, include: ['src'] }),
    },
  },
  svelte: {
    versions: { ...versionsOf('examples/svelte'), typescript },
    source: 'src',
    out: 'dist',
    build: [
      ['svelte-check', '--tsconfig', 'tsconfig.json', '--fail-on-warnings'],
      ['vite', 'build'],
    ],
    files: {
      'index.html': indexOf('main.ts'),
      'vite.config.js':
        "import { svelte } from '@sveltejs/vite-plugin-svelte'\nexport default { plugins: [svelte()] }\n",
      'svelte.config.js': 'export default {}\n',
      'tsconfig.json': JSON.stringify({
        compilerOptions: { ...compilerOptions, verbatimModuleSyntax: true },
        include: ['src'],
      }),
    },
  },
  solid: {
    versions: { ...versionsOf('examples/solid'), typescript },
    source: 'src',
    out: 'dist',
    build: [['tsc'], ['vite', 'build']],
    files: {
      'index.html': indexOf('main.tsx'),
      'vite.config.js': vite('solid()', 'vite-plugin-solid'),
      'tsconfig.json': JSON.stringify({
        compilerOptions: { ...compilerOptions, jsx: 'preserve', jsxImportSource: 'solid-js' },
        include: ['src'],
      }),
    },
  },
}

let browser: Browser
let packages: Registry
beforeAll(async () => {
  browser = await launchBrowser()
  packages = await serveRegistry(['core', 'client', 'react', 'vue', 'svelte', 'solid'])
})
afterAll(async () => {
  await browser?.close()
  packages?.close()
})

test.each(Object.entries(reactApps))(
  'the shadcn command installs every item into a fresh %s application, which compiles, builds, and asks and is answered in Chromium',
  async (_, { versions, source, out, build, files }) => {
    const site = await serve((request, response) => {
      const name = /^\/r\/([\w-]+)\.json$/.exec(request.url ?? '')?.[1]
      const item = items.find((one) => one.name === name)
      // what the command asks the registry of shadcn for, of whatever base color
      const none = { light: {}, dark: {} }
      const colors = { inlineColors: none, cssVars: none, inlineColorsTemplate: '', cssVarsTemplate: '' }
      response.end(JSON.stringify(item ? served(item) : colors))
    })
    const tailwind = { config: '', css: 'index.css', baseColor: 'neutral', cssVariables: true, prefix: '' }
    const aliases = { components: '@/components', utils: '@/lib/utils', ui: '@/components/ui', lib: '@/lib' }
    const { home, npm, remove } = freshApp(
      packages,
      versions,
      {
        ...files,
        'components.json': JSON.stringify({ style: 'new-york', rsc: true, tsx: true, tailwind, aliases }),
        'index.css': '',
      },
      { REGISTRY_URL: `${site.url}/shadcn`, NEXT_TELEMETRY_DISABLED: '1' },
    )
    try {
      for (const file of ['demo.tsx', 'server.ts'])
        cpSync(join(import.meta.dirname, 'page', file), join(home, source, file))
      const urls = items.map(({ name }) => `${site.url}/r/${name}.json`)
      await npm(
        'exec',
        '--yes',
        `--package=${shadcn}`,
        '--',
        'shadcn',
        'add',
        ...urls,
        '--yes',
        '--overwrite',
      )
      for (const command of build) await npm('exec', '--', ...command)
      await usePage(browser, join(home, out))
    } finally {
      site.close()
      remove()
    }
  },
)

test.each(Object.entries(otherApps))(
  'the files for %s, copied into a fresh application, compile, build, and ask and are answered in Chromium',
  async (name, { versions, source, out, build, files }) => {
    const ours = Object.fromEntries(['core', 'client', name].map((one) => [`@countersign/${one}`, '*']))
    const { home, npm, remove } = freshApp(packages, { ...versions, ...ours }, files)
    try {
      const page = join(import.meta.dirname, 'page')
      cpSync(join(page, name), join(home, source), { recursive: true })
      cpSync(join(page, 'server.ts'), join(home, source, 'server.ts'))
      cpSync(join(registryFolder, name), join(home, source, 'parts'), { recursive: true })
      cpSync(join(registryFolder, 'base.css'), join(home, source, 'parts/base.css'))
      await npm('install')
      for (const command of build) await npm('exec', '--', ...command)
      await usePage(browser, join(home, out))
    } finally {
      remove()
    }
  },
)
