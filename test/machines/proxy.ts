import { once } from 'node:events'
import {
  Agent,
  createServer,
  type IncomingMessage,
  type RequestOptions,
  request as requestTo,
  type ServerResponse,
} from 'node:http'
import { buffer } from 'node:stream/consumers'

/** What happens to a connection on its way. */
export type Fault =
  | { readonly kind: 'none' }
  /** It breaks before the server has heard of the request. */
  | { readonly kind: 'unsent' }
  /** The server has the request; not a byte of its answer gets through. */
  | { readonly kind: 'unanswered' }
  /** It breaks once that many bytes of the answer got through. */
  | { readonly kind: 'cut'; readonly after: number }

export interface Proxy {
  readonly url: string
  /** Which servers answered, in order. */
  readonly served: readonly string[]
  /** Breaks every connection that is open. */
  cut(): void
  close(): Promise<void>
}

/** An HTTP proxy on loopback: each request goes to the next server that takes it. */
export async function startProxy(
  servers: () => readonly string[],
  nextFault: () => Fault = () => ({ kind: 'none' }),
): Promise<Proxy> {
  const connections = new Agent({ keepAlive: false })
  const served: string[] = []
  let turn = 0

  async function forward(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const fault = nextFault()
    const body = await buffer(request)
    if (fault.kind === 'unsent') return void request.socket.destroy()
    const { method, url, headers } = request
    const options = { method, headers, agent: connections }
    const all = servers()
    const first = turn++
    for (let tries = 0; tries < all.length; tries++) {
      const server = all[(first + tries) % all.length] ?? ''
      const answer = await ask(`${server}${url}`, options, body, response)
      if (answer === 'not-there') continue
      if (answer === 'broken' || fault.kind === 'unanswered') break
      served.push(server)
      return pass(answer, response, fault.kind === 'cut' ? fault.after : Number.POSITIVE_INFINITY)
    }
    request.socket.destroy()
  }

  const server = createServer((request, response) => {
    forward(request, response).catch(() => request.socket.destroy())
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  return {
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`,
    served,
    cut: () => server.closeAllConnections(),
    close: async () => {
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      connections.destroy()
      await closed
    },
  }
}

/** Asks one server. `not-there`: nobody listens, so another may be asked; `broken`: it may have heard the request. */
function ask(
  url: string,
  options: RequestOptions,
  body: Buffer,
  response: ServerResponse,
): Promise<IncomingMessage | 'not-there' | 'broken'> {
  return new Promise((resolve) => {
    const asked = requestTo(url, options, resolve)
    asked.on('error', (error) =>
      resolve('code' in error && error.code === 'ECONNREFUSED' ? 'not-there' : 'broken'),
    )
    response.on('close', () => asked.destroy())
    asked.end(body)
  })
}

async function pass(answer: IncomingMessage, response: ServerResponse, most: number): Promise<void> {
  const { statusCode = 502, headers } = answer
  response.writeHead(statusCode, headers)
  response.flushHeaders()
  let passed = 0
  for await (const chunk of answer) {
    passed += chunk.length
    if (passed > most) throw new Error('cut')
    response.write(chunk)
  }
  response.end()
}
