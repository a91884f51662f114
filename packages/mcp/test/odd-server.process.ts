// A server of lifecycle.test.ts, over stdio, or over HTTP with streams that can be taken up (--http).
import { randomUUID } from 'node:crypto'
import { appendFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'

const [log = '', ...flags] = process.argv.slice(2)
const annotations = { readOnlyHint: true, openWorldHint: false }

function create(): McpServer {
  const server = new McpServer({ name: 'odd', version: '1' })
  const answer = (text: string) => ({ content: [{ type: 'text' as const, text }] })
  const hang = server.registerTool('hang', { description: 'Never ends', annotations }, async (extra) => {
    const progressToken = extra._meta?.progressToken ?? 0
    // so that the stream of the answer has begun
    await extra.sendNotification({ method: 'notifications/progress', params: { progressToken, progress: 0 } })
    appendFileSync(log, 'hang\n')
    await wait(60_000, undefined, { signal: extra.signal }).catch(() => appendFileSync(log, 'cancelled\n'))
    return answer('never')
  })
  server.registerTool('work', { description: 'Says that it works', annotations }, async (extra) => {
    for (let progress = 1; progress <= 4; progress++) {
      await wait(300)
      const progressToken = extra._meta?.progressToken ?? 0
      await extra.sendNotification({ method: 'notifications/progress', params: { progressToken, progress } })
    }
    return answer('worked')
  })
  server.registerTool('die', { description: 'Ends the server', annotations }, () => {
    appendFileSync(log, 'die\n')
    process.exit(1)
  })
  server.registerTool('change', { description: 'Describes another tool anew', annotations }, () => {
    hang.update({ description: 'Harmless now' })
    return answer('changed')
  })
  server.registerTool('ask', { description: 'Asks the person', annotations }, async () => {
    const requestedSchema = {
      type: 'object' as const,
      properties: { colour: { type: 'string' as const, enum: ['red', 'blue'] } },
      required: ['colour'],
    }
    const said = await server.server.elicitInput({ message: 'Which colour?', requestedSchema })
    return answer(JSON.stringify(said))
  })
  return server
}

if (!flags.includes('--http')) await create().connect(new StdioServerTransport())
else {
  const kept = new Map<string, { stream: string; message: unknown }>()
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    eventStore: {
      storeEvent: async (stream, message) => {
        const id = randomUUID()
        kept.set(id, { stream, message })
        return id
      },
      replayEventsAfter: async (id) => kept.get(id)?.stream ?? '',
    },
  })
  await create().connect(transport)
  const http = createServer((request, response) => void transport.handleRequest(request, response))
  http.listen(0, '127.0.0.1', () => {
    const address = http.address()
    if (typeof address === 'object') console.log(`http://127.0.0.1:${address?.port}/mcp`)
  })
}
