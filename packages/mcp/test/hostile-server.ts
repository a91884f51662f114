import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type McpToolsOptions, mcpTools } from '@countersign/mcp'
import { call, collect, input, results, say, testAgent, user } from '../../server/test/support.js'
import { afterwards } from './support.js'

interface Behaviour {
  /** Answers a call. */
  readonly called?: (response: ServerResponse, id: number) => void
  /** Answers an attempt to open a stream. Default: it has none. */
  readonly opened?: (response: ServerResponse, lastEventId: string | undefined) => void
  /** What the server lists. */
  readonly tools?: readonly object[]
}

const annotations = { readOnlyHint: true, openWorldHint: false }
const look = { name: 'look', inputSchema: { type: 'object' }, annotations }

/** A server that behaves badly in one respect, and what it has counted. */
export async function hostile({ called, opened, tools = [look] }: Behaviour) {
  const counts = { opened: 0, called: 0, replies: 0 }
  const server = createServer(async (request: IncomingMessage, response) => {
    let text = ''
    for await (const chunk of request) text += chunk
    if (request.method === 'GET') {
      counts.opened++
      const token = request.headers['last-event-id']
      return opened ? opened(response, token?.toString()) : response.writeHead(405).end()
    }
    if (request.method !== 'POST') return response.writeHead(405).end()
    const { id, method, params } = JSON.parse(text)
    // Replies are not taken: they stay open.
    if (method === undefined) return counts.replies++
    if (id === undefined) return response.writeHead(202).end()
    if (method === 'tools/call') {
      counts.called++
      return called?.(response, id)
    }
    const about = { capabilities: { tools: {} }, serverInfo: { name: 'x', version: '1' } }
    const result = method === 'initialize' ? { ...about, protocolVersion: params.protocolVersion } : { tools }
    response.setHeader('content-type', 'application/json').end(JSON.stringify(answer(id, result)))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  afterwards(() => {
    server.close()
    server.closeAllConnections()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, counts }
}

export const answer = (id: number, result: object) => ({ jsonrpc: '2.0', id, result })

/** Begins a stream. */
export const stream = (response: ServerResponse) =>
  response.writeHead(200, { 'content-type': 'text/event-stream' })

export async function connect(url: string, options: Partial<McpToolsOptions> = {}) {
  const mcp = await mcpTools({ url }, { server: 'x', trustAnnotations: ['look'], warn: () => {}, ...options })
  afterwards(mcp.dispose)
  /** What the model is told of so many calls at once. */
  const look = async (times = 1): Promise<readonly string[]> => {
    const calls = Array.from({ length: times }, (_, at) => [`c${at}`, 'mcp__x__look', {}] as const)
    const { agent } = testAgent([call(...calls), say('ok')], { tools: mcp.tools })
    return results(await collect(agent, input([user('go')]))).map((told) => JSON.stringify(told.content))
  }
  return { mcp, look }
}
