// The server of docs/start.md. With OPTION: docs/security.md ("What to configure") and docs/persistence.md (`goOnFor`).
import { createServer } from 'node:http'
import { createAgent, scriptedModel, tool } from '@countersign/server'
import { fileLedger, toNodeHandler } from '@countersign/server/node'
import { description, inputSchema, listen, nextStep, transfer } from './common.mjs'

const { OPTION, DATA } = process.env
const configured = OPTION && {
  approvals: { secret: process.env.COUNTERSIGN_SECRET, ledger: await fileLedger(`${DATA}/approvals.sqlite`) },
}

const transferTool = tool({
  name: 'transfer',
  description,
  input: inputSchema,
  needsApproval: true,
  execute: transfer,
})

const model = scriptedModel(async function* ({ messages }) {
  const last = messages.findLastIndex(({ role }) => role === 'user')
  const text = messages[last].content.map((part) => part.text ?? '').join('')
  const results = messages
    .slice(last + 1)
    .flatMap(({ role, content }) => (role === 'tool' ? content : []))
    .flatMap((part) => (part.type === 'tool-result' ? [JSON.stringify(part.outcome)] : []))
  const { call, say } = nextStep(text, results)
  if (call) {
    const id = crypto.randomUUID()
    yield { type: 'tool-call', id, name: 'transfer', arguments: JSON.stringify(call) }
    yield { type: 'finish', reason: 'tool_calls' }
    return
  }
  for await (const delta of say) yield { type: 'text-delta', delta }
  yield { type: 'finish', reason: 'stop' }
})

const agent = createAgent({ model, tools: [transferTool], warn: () => {}, ...configured })
if (OPTION) await agent.recover()

const chat = toNodeHandler(agent, {
  // The user comes from the application's own authentication.
  context: ({ headers }) => ({ subject: headers['x-user'] }),
  ...(OPTION && { goOnFor: 60_000 }),
})
listen(createServer(chat))
