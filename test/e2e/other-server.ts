import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { tmpdir } from 'node:os'
import { extname, join, normalize } from 'node:path'
import { onTestFinished } from 'vitest'
import { listening } from '../engine/listening.js'
import type { PageName } from './demo.js'

const root = join(import.meta.dirname, '../..')
const seam = 'examples/page/src/connection.ts'

/** In the page every `@countersign/*` entry is its source, as in the tests. */
const alias = [
  { find: /^@countersign\/example-page\/(.+)$/, replacement: `${root}/examples/page/src/$1` },
  { find: /^@countersign\/([^/]+)$/, replacement: `${root}/packages/$1/src/index.ts` },
  { find: /^@countersign\/(?!registry\/)([^/]+)\/(.+)$/, replacement: `${root}/packages/$1/src/$2.ts` },
]

/** How a handler answers `POST /api/chat`. */
export type ChatHandler = (request: IncomingMessage, response: ServerResponse) => Promise<void> | void

/**
 * The example page of a framework with another connection and nothing else changed, built for this test, on a server of somebody else
 * that has the page and `/api/chat`. `connection` is the module in the place of the page's own, with its one line. Gives the page's
 * address.
 */
export async function pageOnOtherServer(
  connection: string,
  chat: ChatHandler,
  page: PageName = 'react',
): Promise<string> {
  const folder = await buildPage(connection, page)
  onTestFinished(() => rm(folder, { recursive: true }))
  const server: Server = createServer(async (request, response) => {
    if (request.method === 'POST' && request.url === '/api/chat') return chat(request, response)
    return serveFile(folder, request.url ?? '/', response)
  })
  return `http://${await listening(server)}/`
}

async function buildPage(connection: string, page: PageName): Promise<string> {
  const { build } = await import('vite')
  const outDir = await mkdtemp(join(tmpdir(), 'countersign-page-'))
  let replaced = 0
  await build({
    root: join(root, 'examples', page),
    configFile: join(root, 'examples', page, 'vite.config.ts'),
    logLevel: 'error',
    resolve: { alias },
    build: { outDir, emptyOutDir: true, minify: false },
    plugins: [
      {
        name: 'other-connection',
        enforce: 'pre',
        load(id) {
          if (!id.replaceAll('\\', '/').endsWith(seam)) return undefined
          replaced++
          return connection
        },
      },
    ],
  })
  if (replaced !== 1)
    throw new Error(`The page has its connection in ${seam}; it was replaced ${replaced} times.`)
  return outDir
}

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.css': 'text/css',
}

async function serveFile(folder: string, url: string, response: ServerResponse): Promise<void> {
  const path = normalize(new URL(url, 'http://page.invalid').pathname)
  try {
    const body = await readFile(join(folder, path === '/' ? 'index.html' : path))
    response.writeHead(200, { 'content-type': types[extname(path) || '.html'] ?? 'application/octet-stream' })
    response.end(body)
  } catch {
    response.writeHead(404).end()
  }
}
