import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { listening } from '../engine/listening.js'

/** A route as Next.js and its like have it. */
export type FetchRoute = (request: Request) => Promise<Response>

/** On node:http on the loopback interface until the test has ended. Its URL. */
export async function serveFetch(route: FetchRoute): Promise<string> {
  const server = createServer((request, response) => {
    void answerFetch(route, request, response).catch(() => response.destroy())
  })
  return `http://${await listening(server)}`
}

/** Answers a request of node:http by such a route. */
export async function answerFetch(
  route: FetchRoute,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const gone = new AbortController()
  response.on('close', () => gone.abort())
  const headers = Object.entries(request.headers).flatMap(([name, value]): [string, string][] =>
    typeof value === 'string' ? [[name, value]] : [],
  )
  const asked = await route(
    new Request(`http://${request.headers.host}${request.url}`, {
      method: request.method ?? 'GET',
      headers,
      signal: gone.signal,
      ...(request.method === 'POST' && { body: Readable.toWeb(request) as ReadableStream, duplex: 'half' }),
    } as RequestInit),
  )
  response.writeHead(asked.status, Object.fromEntries(asked.headers))
  response.flushHeaders()
  if (asked.body) for await (const chunk of asked.body as AsyncIterable<Uint8Array>) response.write(chunk)
  response.end()
}
