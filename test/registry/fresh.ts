import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import type { Registry } from '../newcomer/registry.js'

/** What TypeScript checks a fresh application with. */
export const compilerOptions = {
  target: 'es2022',
  lib: ['es2022', 'dom', 'dom.iterable'],
  module: 'esnext',
  moduleResolution: 'bundler',
  types: ['vite/client'],
  strict: true,
  noEmit: true,
  skipLibCheck: true,
}

/** The page of an application that Vite builds. */
export const indexOf = (main: string) =>
  `<!doctype html><html lang="en"><title>Fresh</title><div id="root"></div><script type="module" src="/src/${main}"></script></html>`

export interface FreshApp {
  readonly home: string
  /** Runs a command of npm in it. Rejects with what the command has printed. */
  readonly npm: (...command: readonly string[]) => Promise<unknown>
  remove(): void
}

/** An application in a folder of its own that has these files, and installs our packages from `packages`. */
export function freshApp(
  packages: Registry,
  dependencies: Readonly<Record<string, string>>,
  files: Readonly<Record<string, string>>,
  variables: Readonly<Record<string, string>> = {},
): FreshApp {
  const home = mkdtempSync(join(tmpdir(), 'countersign-registry-items-'))
  const all = {
    ...files,
    'package.json': JSON.stringify({ name: 'fresh', private: true, type: 'module', dependencies }),
    // a shell between npm and a command drops variables with such names
    '.npmrc': Object.entries(packages.env)
      .map(([name, value]) => `${name.replace('npm_config_', '')}=${value}\n`)
      .join(''),
  }
  for (const [path, text] of Object.entries(all)) {
    mkdirSync(dirname(join(home, path)), { recursive: true })
    writeFileSync(join(home, path), text)
  }
  const env = { ...process.env, ...variables }
  return {
    home,
    npm: (...command) =>
      promisify(execFile)('npm', command, { cwd: home, env }).catch((error) => {
        throw new Error(`npm ${command.join(' ')} failed:\n${error.stdout}\n${error.stderr}`)
      }),
    remove: () => rmSync(home, { recursive: true, force: true }),
  }
}

export async function serve(listener: RequestListener) {
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
