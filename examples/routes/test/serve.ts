import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { createAdaptorServer } from '@hono/node-server'
import { onTestFinished } from 'vitest'
import { expressApp } from '../src/express.js'
import { fastifyApp } from '../src/fastify.js'
import { honoApp } from '../src/hono.js'
import { nextRoutes } from '../src/next.js'
import type { RouteParts } from '../src/parts.js'

interface Served {
  readonly url: string
  readonly server: Server
}

/** The routes of each framework on loopback. */
export const frameworks: Readonly<Record<string, (parts: RouteParts) => Promise<Served>>> = {
  Express: (parts) => listen(createServer(expressApp(parts))),
  Hono: (parts) => listen(adapted(honoApp(parts).fetch)),
  Fastify: async (parts) => {
    const app = fastifyApp(parts)
    onTestFinished(() => app.close())
    return { url: await app.listen({ host: '127.0.0.1', port: 0 }), server: app.server }
  },
  'Next-style': (parts) => listen(adapted(byPath(parts))),
}

/** As Next.js finds the exports of its files. */
function byPath(parts: RouteParts): (request: Request) => Response | Promise<Response> {
  const { chat, answers, grants } = nextRoutes(parts)
  const files = new Map(
    Object.entries({ '/api/chat': chat, '/api/chat/answers': answers, '/api/grants': grants }),
  )
  return (request) => {
    const file = new Map(Object.entries(files.get(new URL(request.url).pathname) ?? {}))
    return file.get(request.method)?.(request) ?? new Response(null, { status: 404 })
  }
}

function adapted(fetch: (request: Request) => Response | Promise<Response>): Server {
  const server = createAdaptorServer({ fetch })
  if ('listen' in server && 'closeAllConnections' in server) return server
  throw new Error('not a server of node:http')
}

async function listen(server: Server): Promise<Served> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const address = server.address()
  return { url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`, server }
}
