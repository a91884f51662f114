import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { afterAll, expect, test } from 'vitest'
import { bundleForNode } from '../../scripts/bundle.mjs'
import { full } from '../full.js'

// What a hostile MCP server answers is read by a process of its own, with 512 MiB of heap.
const MOST = 4 * 1024 * 1024
const script = await bundleForNode(join(import.meta.dirname, 'mcp.process.ts'), import.meta.dirname)
afterAll(script.remove)

/** What became of so many calls at once, each of which has this result, in a stream that stays open if so. */
async function outcomes(result: string, calls: number, stays: boolean): Promise<readonly string[]> {
  const annotations = { readOnlyHint: true, openWorldHint: false }
  const tools = [{ name: 'look', inputSchema: { type: 'object' }, annotations }]
  const server = createServer(async (request, response) => {
    if (request.method !== 'POST') return response.writeHead(405).end()
    const { id, method, params } = JSON.parse(await text(request))
    if (id === undefined) return response.writeHead(202).end()
    const { protocolVersion } = params ?? {}
    const about = { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'x', version: '1' } }
    const said =
      method === 'tools/call' ? result : JSON.stringify(method === 'initialize' ? about : { tools })
    const answer = `{"jsonrpc":"2.0","id":${id},"result":${said}}`
    response.setHeader('content-type', stays ? 'text/event-stream' : 'application/json')
    if (stays) response.write(`data: ${answer}\n\n`)
    else response.end(answer)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const child = spawn(process.execPath, ['--max-old-space-size=512', script.file, url, String(calls)], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  try {
    const [told, errors] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
    if (child.exitCode !== 0) throw new Error(/FATAL ERROR.*|\w*Error.*/.exec(errors)?.[0] ?? errors)
    return told.trim().split('\n')
  } finally {
    child.kill('SIGKILL')
    server.close()
    server.closeAllConnections()
  }
}

/** As many copies as fit into a response. */
const fill = (before: string, copy: string, after: string) =>
  `${before}${copy.repeat((MOST - 1000) / copy.length)}${after}`

const objects = fill('{"content":[],"structuredContent":{"a":[', '{},', '0]}}')

test.each([
  ['small objects', objects, /is not kept|hold too much/],
  ['small objects, in streams that stay open', objects, /is not kept|hold too much/],
  ['wrong parts', fill('{"content":[', '0,', '0]}'), /too many values|hold too much/],
  ['parts of no type', fill('{"content":[', '{},', '0]}'), /too many values|hold too much/],
  ['a long text', fill('{"content":[{"type":"text","text":"', 'x', '"}]}'), /is not kept|hold too much/],
])('the largest responses of an MCP server, all %s, do not end the process', async (name, result, told) => {
  for (const calls of full ? [1, 64] : [4]) {
    const all = await outcomes(result, calls, name.endsWith('stay open'))
    expect(all).toHaveLength(calls)
    for (const one of all) expect(one).toMatch(told)
  }
})
