import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, extname, join } from 'node:path'
import { promisify } from 'node:util'
import type { Browser } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { launchBrowser } from '../e2e/demo.js'
import { type Registry, serveRegistry } from '../newcomer/registry.js'
import { items, served } from './items.js'

const root = join(import.meta.dirname, '../..')
const shadcn = 'shadcn@4.23.0'
const versionsOf = (app: string) => {
  const { dependencies, devDependencies } = JSON.parse(
    readFileSync(join(root, `examples/apps/${app}/package.json`), 'utf8'),
  )
  const all: [string, string][] = Object.entries({ ...dependencies, ...devDependencies })
  return Object.fromEntries(
    all.filter(([name]) => /^(?:react|react-dom|next|vite|typescript|@types\/.+|@vitejs\/.+)$/.test(name)),
  )
}

/** What a fresh application consists of, before anything of the registry is in it. `out` is where its pages are built. */
interface Fresh {
  readonly app: string
  readonly source: string
  readonly out: string
  readonly build: readonly (readonly string[])[]
  readonly files: Readonly<Record<string, string>>
}

const compilerOptions = {
  target: 'es2022',
  lib: ['es2022', 'dom', 'dom.iterable'],
  module: 'esnext',
  moduleResolution: 'bundler',
  jsx: 'react-jsx',
  strict: true,
  noEmit: true,
  skipLibCheck: true,
}

const fresh: Readonly<Record<string, Fresh>> = {
  Vite: {
    app: 'express',
    source: 'src',
    out: 'dist',
    build: [['tsc'], ['vite', 'build']],
    files: {
      'index.html':
        '<!doctype html><html lang="en"><title>Fresh</title><div id="root"></div><script type="module" src="/src/main.tsx"></script></html>',
      'src/main.tsx':
        "import { createRoot } from 'react-dom/client'\nimport { Demo } from './demo'\nconst root = document.getElementById('root')\nif (root) createRoot(root).render(<Demo />)\n",
      'vite.config.js':
        "import react from '@vitejs/plugin-react'\nexport default { plugins: [react()], resolve: { tsconfigPaths: true } }\n",
      'tsconfig.json': JSON.stringify({
        compilerOptions: { ...compilerOptions, paths: { '@/*': ['./src/*'] } },
        include: ['src'],
      }),
    },
  },
  'Next.js': {
    app: 'next',
    source: '.',
    out: 'out',
    // it checks types as part of its build
    build: [['next', 'build']],
    files: {
      'app/layout.tsx':
        'export default ({ children }: { children: React.ReactNode }) => <html lang="en"><body>{children}</body></html>\n',
      'app/page.tsx': "import { Demo } from '@/demo'\nexport default () => <Demo />\n",
      'next.config.mjs': "export default { output: 'export' }\n",
      'tsconfig.json': JSON.stringify({
        compilerOptions: { ...compilerOptions, paths: { '@/*': ['./*'] } },
        include: ['**/*.ts', '**/*.tsx'],
        exclude: ['node_modules'],
      }),
    },
  },
}

let browser: Browser
let packages: Registry
beforeAll(async () => {
  browser = await launchBrowser()
  packages = await serveRegistry(['core', 'client', 'react'])
})
afterAll(async () => {
  await browser?.close()
  packages?.close()
})

test.each(Object.entries(fresh))(
  'the shadcn command installs every item into a fresh %s application, which compiles, builds, and asks and is answered in Chromium',
  async (_, { app, source, out, build, files }) => {
    const home = mkdtempSync(join(tmpdir(), 'countersign-registry-items-'))
    const site = await serve((request, response) => {
      const name = /^\/r\/([\w-]+)\.json$/.exec(request.url ?? '')?.[1]
      const item = items.find((one) => one.name === name)
      // what the command asks the registry of shadcn for, of whatever base color
      const none = { light: {}, dark: {} }
      const colors = { inlineColors: none, cssVars: none, inlineColorsTemplate: '', cssVarsTemplate: '' }
      response.end(JSON.stringify(item ? served(item) : colors))
    })
    const env = {
      ...process.env,
      REGISTRY_URL: `${site.url}/shadcn`,
      NEXT_TELEMETRY_DISABLED: '1',
    }
    const run = (...command: readonly string[]) =>
      promisify(execFile)('npm', ['exec', '--yes', ...command], { cwd: home, env }).catch((error) => {
        throw new Error(`${command.join(' ')} failed:\n${error.stdout}\n${error.stderr}`)
      })
    try {
      const manifest = { name: 'fresh', private: true, type: 'module', dependencies: versionsOf(app) }
      const tailwind = { config: '', css: 'index.css', baseColor: 'neutral', cssVariables: true, prefix: '' }
      const aliases = {
        components: '@/components',
        utils: '@/lib/utils',
        ui: '@/components/ui',
        lib: '@/lib',
      }
      const all = {
        ...files,
        'package.json': JSON.stringify(manifest),
        'components.json': JSON.stringify({ style: 'new-york', rsc: true, tsx: true, tailwind, aliases }),
        'index.css': '',
        // a shell between npm and the command drops variables with such names
        '.npmrc': Object.entries(packages.env)
          .map(([name, value]) => `${name.replace('npm_config_', '')}=${value}\n`)
          .join(''),
      }
      for (const [path, text] of Object.entries(all)) {
        mkdirSync(dirname(join(home, path)), { recursive: true })
        writeFileSync(join(home, path), text)
      }
      cpSync(join(import.meta.dirname, 'page/demo.tsx'), join(home, source, 'demo.tsx'))
      const urls = items.map(({ name }) => `${site.url}/r/${name}.json`)
      await run(`--package=${shadcn}`, '--', 'shadcn', 'add', ...urls, '--yes', '--overwrite')
      for (const command of build) await run('--', ...command)
      await use(join(home, out))
    } finally {
      site.close()
      rmSync(home, { recursive: true, force: true })
    }
  },
)

/** Opens the built page, denies what it asks about with a reason, and looks at what its server was told. */
async function use(folder: string): Promise<void> {
  const types: Record<string, string> = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css' }
  const site = await serve(({ url = '/' }, response) => {
    const file = url === '/' ? '/index.html' : decodeURIComponent(new URL(url, 'http://localhost').pathname)
    try {
      const body = readFileSync(join(folder, file))
      response.writeHead(200, { 'content-type': types[extname(file)] ?? 'text/plain' }).end(body)
    } catch {
      response.writeHead(file === '/favicon.ico' ? 204 : 404).end()
    }
  })
  const page = await browser.newPage()
  const complaints: string[] = []
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(String(error)))
  try {
    await page.goto(site.url)
    await page.getByRole('button', { name: 'Ask' }).click()
    await page.getByRole('button', { name: 'One by one…' }).click()
    const card = page.getByRole('dialog').getByRole('region', { name: 'delete_file' })
    expect(await card.getByRole('definition').allInnerTexts()).toEqual(['notes.txt'])
    await card.getByText('The server says: For good.').waitFor()
    expect(await card.getByRole('button').allInnerTexts()).toEqual(['Deny', 'Approve once'])
    await card.getByLabel('Reason for a denial').fill('Mara needs it')
    await card.getByRole('button', { name: 'Deny' }).click()
    await page.getByText('answered: {"approved":false,"reason":"Mara needs it"}').waitFor()
    expect(await page.getByRole('dialog').count()).toBe(0)
    expect(complaints).toEqual([])
  } finally {
    await page.close()
    site.close()
  }
}

async function serve(listener: RequestListener) {
  const server = createServer(listener).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  return {
    url: `http://127.0.0.1:${port}`,
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}
