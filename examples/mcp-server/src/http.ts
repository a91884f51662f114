import { randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'

/** Serves MCP on the loopback interface, one server per session, until the process ends. Resolves to the port. */
export async function serveHttp(create: () => McpServer, port: number): Promise<number> {
  const sessions = new Map<string, StreamableHTTPServerTransport>()

  /** Starts a session for a request without one. The transport refuses any request but `initialize`. */
  async function begin(): Promise<StreamableHTTPServerTransport> {
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (id) => void sessions.set(id, transport),
      onsessionclosed: (id) => void sessions.delete(id),
    })
    await create().connect(transport)
    return transport
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const id = request.headers['mcp-session-id']
    const known = typeof id === 'string' ? sessions.get(id) : undefined
    if (!isLoopback(request)) return refuse(response, 403)
    if (new URL(request.url ?? '', 'http://localhost').pathname !== '/mcp') return refuse(response, 404)
    if (id !== undefined && known === undefined) return refuse(response, 404)
    await (known ?? (await begin())).handleRequest(request, response)
  }

  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => {
      console.error(error)
      if (!response.headersSent) refuse(response, 500)
    })
  })
  return new Promise((resolve, reject) => {
    server.on('error', reject)
    server.listen(port, '127.0.0.1', () => {
      const address = server.address()
      resolve(typeof address === 'object' && address !== null ? address.port : port)
    })
  })
}

/** A page of another site may reach this port by DNS rebinding. Its Host or Origin header gives it away. */
function isLoopback({ headers: { host = '', origin } }: IncomingMessage): boolean {
  const local = (name: string) => name === '127.0.0.1' || name === 'localhost'
  const named = URL.canParse(`http://${host}`) && local(new URL(`http://${host}`).hostname)
  return named && (origin === undefined || (URL.canParse(origin) && local(new URL(origin).hostname)))
}

function refuse(response: ServerResponse, status: number): void {
  response.writeHead(status).end()
}
