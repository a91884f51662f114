// How much of a response is read: it is counted as it arrives, since to parse it costs many times its size.
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { mcpTools } from '@countersign/mcp'
import { expect, test } from 'vitest'
import { call, collect, input, results, say, testAgent, user } from '../../server/test/support.js'
import { afterwards, errorOf } from './support.js'

const MOST = 100_000
type Body = (response: ServerResponse, id: number, type: 'json' | 'stream') => void

const write = (response: ServerResponse, type: 'json' | 'stream', ...messages: object[]) => {
  response.setHeader('content-type', type === 'json' ? 'application/json' : 'text/event-stream')
  const texts = messages.map((message) => JSON.stringify({ jsonrpc: '2.0', ...message }))
  response.end(type === 'json' ? texts.at(-1) : texts.map((text) => `data: ${text}\r\n\r\n`).join(''))
}
const result = (length: number) => ({ content: [{ type: 'text', text: 'x'.repeat(length) }] })
const tools = [
  {
    name: 'look',
    inputSchema: { type: 'object' },
    annotations: { readOnlyHint: true, openWorldHint: false },
  },
]

/** The text of the result of a call to a server that answers it with `body`, or of its failure. */
async function outcome(type: 'json' | 'stream', body: Body): Promise<string> {
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const chunk of request) text += chunk
    if (request.method !== 'POST') return response.writeHead(405).end()
    const { id, method, params } = JSON.parse(text)
    if (id === undefined) return response.writeHead(202).end()
    if (method === 'tools/call') return body(response, id, type)
    const { protocolVersion } = params ?? {}
    const about = { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'x', version: '1' } }
    write(response, type, { id, result: method === 'initialize' ? about : { tools } })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  afterwards(() => server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const source = { url, maxResponseBytes: MOST }
  const mcp = await mcpTools(source, { server: 'big', trustAnnotations: ['look'], warn: () => {} })
  afterwards(mcp.dispose)
  const { agent } = testAgent([call(['c1', 'mcp__big__look', {}]), say('ok')], { tools: mcp.tools })
  const [told] = results(await collect(agent, input([user('go')])))
  return JSON.stringify(told?.content)
}

const tooLarge = `more than ${MOST} bytes). It may or may not have had an effect`

test.each(['json', 'stream'] as const)(
  'a response of an MCP server of more bytes than maxResponseBytes is not read, and its call fails: %s',
  async (type) => {
    expect(
      await outcome(type, (response, id) => write(response, type, { id, result: result(2 * MOST) })),
    ).toContain(tooLarge)
    // one event of many short lines
    const lines = `data: ${' '.repeat(100)}\r\n`.repeat(2000)
    if (type === 'stream')
      expect(
        await outcome(type, (response) => {
          response.setHeader('content-type', 'text/event-stream')
          response.end(`${lines}data: {}\r\n\r\n`)
        }),
      ).toContain(tooLarge)
    expect(
      await outcome(type, (response, id) => write(response, type, { id, result: result(MOST - 200) })),
    ).toContain('xxx')
  },
)

test('what a server says before its result does not count, however much it is', async () => {
  const said = Array.from({ length: 100 }, () => ({
    ...{ method: 'notifications/message' },
    params: { level: 'info', data: 'x'.repeat(5000) },
  }))
  const told = outcome('stream', (response, id) =>
    write(response, 'stream', ...said, { id, result: result(3) }),
  )
  expect(await told).toContain('xxx')
})

test('a failure of an MCP server is not read further than maxResponseBytes either', async () => {
  const told = outcome('json', (response) => response.writeHead(500).end('x'.repeat(2 * MOST)))
  expect(await told).toContain(tooLarge)
})

test('maxResponseBytes is a positive number', async () => {
  for (const maxResponseBytes of [0, -1, Number.NaN]) {
    const source = { url: 'http://127.0.0.1:1/', maxResponseBytes }
    expect(await errorOf(mcpTools(source, { server: 'x' }))).toMatchObject({
      code: 'invalid-option',
      message: expect.stringContaining('maxResponseBytes'),
    })
  }
})
