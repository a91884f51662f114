import { readFile } from 'node:fs/promises'
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http'
import { extname, join, normalize, sep } from 'node:path'

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.json': 'application/json; charset=utf-8',
  '.map': 'application/json; charset=utf-8',
}

// Only the page's own files may run in it, whatever a file or a model contains.
const pageHeaders = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cache-control': 'no-cache',
}

/** Serves the built page from `pageFolder` and passes each path of `api` to its listener. Responds only to requests for localhost. */
export function pageServer(pageFolder: string, api: Readonly<Record<`/${string}`, RequestListener>>): Server {
  return createServer((request, response) => {
    if (!isLocal(request)) return refuse(response, 403, 'This server answers only on localhost.')
    const path = pathOf(request)
    if (path === undefined) return refuse(response, 400, 'A path begins with a slash.')
    const listener = api[path]
    if (listener) return listener(request, response)
    if (request.method !== 'GET' && request.method !== 'HEAD')
      return refuse(response, 405, 'Only GET works here.')
    servePage(pageFolder, path, response).catch(() => refuse(response, 404, 'There is nothing here.'))
  })
}

/** Listens on a loopback port: `port`, or the next free one within `tries` ports. Resolves to the URL. */
export async function listen(server: Server, port: number, tries = 1): Promise<string> {
  try {
    await listenOnce(server, port)
  } catch (error) {
    const taken = error instanceof Error && 'code' in error && error.code === 'EADDRINUSE'
    if (!taken || tries <= 1) throw error
    return listen(server, port + 1, tries - 1)
  }
  const address = server.address()
  return `http://localhost:${typeof address === 'object' && address ? address.port : port}`
}

function listenOnce(server: Server, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', () => {
      server.off('error', reject)
      resolve()
    })
  })
}

/** A foreign page whose name was rebound to 127.0.0.1 still sends its own Host and Origin. */
function isLocal({ headers }: IncomingMessage): boolean {
  const isOurs = (host: string) => /^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?$/.test(host)
  const origin = headers.origin === undefined ? undefined : /^http:\/\/(.+)$/.exec(headers.origin)?.[1]
  return isOurs(headers.host ?? '') && (headers.origin === undefined || origin === headers.host)
}

/** Not with `new URL`: it takes what follows two slashes as a host, and throws if that is invalid. */
function pathOf({ url = '/' }: IncomingMessage): `/${string}` | undefined {
  const [path = ''] = url.split(/[?#]/, 1)
  return path.startsWith('/') ? `/${path.slice(1)}` : undefined
}

async function servePage(folder: string, path: string, response: ServerResponse): Promise<void> {
  const file = normalize(join(folder, decodeURIComponent(path === '/' ? '/index.html' : path)))
  if (!file.startsWith(folder + sep)) return refuse(response, 404, 'There is nothing here.')
  const content = await readFile(file)
  response.writeHead(200, {
    ...pageHeaders,
    'content-type': types[extname(file)] ?? 'application/octet-stream',
  })
  response.end(content)
}

function refuse(response: ServerResponse, status: number, message: string): void {
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8' })
  response.end(`${message}\n`)
}
