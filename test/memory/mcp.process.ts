// An agent with the tools of an MCP server, as a process of its own: `node process <url> <calls>` makes so many calls at once, and prints what became of each.
import { mcpTools } from '@countersign/mcp'
import { createAgent, scriptedModel } from '@countersign/server'

const [, , url = '', calls = '1'] = process.argv
const mcp = await mcpTools({ url }, { server: 'x', trustAnnotations: ['look'] })
const turn = Array.from({ length: Number(calls) }, (_, at) => ({
  ...{ type: 'tool-call', id: `c${at}`, name: 'mcp__x__look', arguments: '{}' },
})) as readonly { type: 'tool-call'; id: string; name: string; arguments: string }[]
const model = scriptedModel(({ messages }) =>
  messages.length > 1
    ? [
        { type: 'text-delta', delta: 'ok' },
        { type: 'finish', reason: 'stop' },
      ]
    : [...turn, { type: 'finish', reason: 'tool_calls' }],
)
const agent = createAgent({ model, tools: mcp.tools, warn: () => {} })
const input = { threadId: 't', runId: 'r', tools: [], context: [], state: {}, forwardedProps: {} }
const messages = [{ id: 'u', role: 'user' as const, content: 'go' }]
for await (const event of agent.run({ ...input, messages }, { context: { subject: 'ann' } })) {
  if (event.type === 'TOOL_CALL_RESULT') console.log(event.content.slice(0, 300))
}
await mcp.dispose()
