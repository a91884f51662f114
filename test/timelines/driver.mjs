// The driver for neutral timelines (server streams on one side, a person's acts at exact moments on the other). It speaks for the
// built, public packages: run `pnpm build` first.
import { ChatClient, stream } from '@countersign/client'

const mode = process.env.PENDING_MODE === 'queue' ? 'queue' : 'cancel'

/** Any input will do: the script's arguments have no schema. */
const anything = { '~standard': { version: 1, vendor: 'timelines', validate: (value) => ({ value }) } }

export default {
  name: 'countersign',
  features: [
    'mid-stream-approval',
    'client-tools',
    'client-tool-manual',
    'library-runs-client-tools',
    'send-while-busy',
    'user-message-while-pending',
    'send-after-failed-continuation',
    'reason',
    'stop',
  ],
  create(env) {
    const tools = Object.entries(env.clientTools).map(([name, run]) => ({
      name,
      description: name,
      location: 'client',
      input: anything,
      execute: (input, { toolCallId }) => run(toolCallId, input),
    }))
    const client = new ChatClient({
      connection: stream((input, { signal }) => events(env, input, signal)),
      tools,
      notify: 'sync',
      onPendingMessage: mode,
      onError: env.onError,
      onWarning: () => {},
    })
    client.subscribe(() => {
      env.onActivity()
      env.onChange()
    })
    return {
      send: async (text) => {
        const result = await client.sendMessage(text)
        if (result.status === 'refused') throw result.error
        if (result.status === 'failed') env.onActivity()
      },
      approve: (answer) => client.addToolApprovalResponse(answer),
      addToolResult: ({ callId, output }) => {
        env.userActed()
        return client.addToolResult({ toolCallId: callId, output })
      },
      stop: () => client.stop(),
      status: () => {
        const { status } = client.getSnapshot()
        return status === 'awaiting-approval' ? 'ready' : status
      },
      view: () => client.getSnapshot().messages.map(viewOf),
      dispose: () => client.dispose(),
    }
  },
}

function viewOf(message) {
  return { role: message.role, parts: message.parts.map(partOf).filter(Boolean) }
}

function partOf(part) {
  if (part.type === 'text') return { type: 'text', text: part.text }
  if (part.type !== 'tool-call') return undefined
  const { approval } = part
  return {
    type: 'tool',
    callId: part.id,
    name: part.name,
    state: stateOf(part),
    ...(approval && { approvalId: approval.id, approved: approval.approved, reason: approval.reason }),
    ...(part.output !== undefined && { output: part.output }),
  }
}

function stateOf(part) {
  if (part.state === 'cancelled') return 'denied'
  if (part.state === 'executing') return part.approval ? 'approval-responded' : 'input-complete'
  return part.state
}

/** What is on the wire of one request, in the neutral form. */
function readRequest(input) {
  const decisions = new Map()
  const pending = []
  let pendingLast = []
  const answered = new Set(input.messages.filter((m) => m.role === 'tool').map((m) => m.toolCallId))
  for (const message of input.messages) {
    if (message.role === 'user') pendingLast = []
    if (message.role !== 'assistant') continue
    pendingLast = []
    for (const call of message.toolCalls ?? []) {
      const own = call.metadata?.countersign
      const approval = own?.approval
      if (!approval) continue
      if (approval.approved !== undefined) {
        decisions.set(approval.id, {
          id: approval.id,
          callId: call.id,
          approved: approval.approved,
          reason: approval.reason,
        })
      } else if (!answered.has(call.id) && own.state !== 'cancelled') {
        pending.push(approval.id)
        pendingLast.push(approval.id)
      }
    }
  }
  for (const { interruptId, status, payload } of input.resume ?? []) {
    if (status !== 'resolved') continue
    const known = decisions.get(interruptId)
    if (known && known.approved !== payload.approved)
      throw new Error(`resume and history disagree about ${interruptId}`)
    decisions.set(interruptId, {
      ...known,
      id: interruptId,
      approved: payload.approved,
      reason: payload.reason,
    })
  }
  return {
    decisions: [...decisions.values()],
    pending,
    pendingLast,
    results: [...answered],
    users: input.messages.filter((m) => m.role === 'user').map((m) => m.content),
  }
}

let count = 0

/** The neutral server's events as AG-UI. */
async function* events(env, input, signal) {
  const run = { threadId: input.threadId, runId: input.runId }
  const script = env.serve(readRequest(input), signal)
  const messageId = `m${++count}`
  const args = new Map()
  let text = false
  yield { type: 'RUN_STARTED', ...run }
  const endText = () => {
    const end = text ? [{ type: 'TEXT_MESSAGE_END', messageId }] : []
    text = false
    return end
  }
  const start = (event) => [
    ...endText(),
    { type: 'TOOL_CALL_START', toolCallId: event.id, toolCallName: event.name, parentMessageId: messageId },
  ]
  const result = (event, content, outcome) => ({
    type: 'TOOL_CALL_RESULT',
    messageId: `r${++count}`,
    toolCallId: event.call,
    content: JSON.stringify(content),
    ...(outcome && { metadata: { countersign: { outcome } } }),
  })
  for await (const event of script) {
    switch (event.t) {
      case 'text':
        if (!text) yield { type: 'TEXT_MESSAGE_START', messageId }
        text = true
        yield { type: 'TEXT_MESSAGE_CONTENT', messageId, delta: event.text }
        break
      case 'call':
      case 'clientCall':
        args.set(event.id, event)
        yield [
          ...start(event),
          { type: 'TOOL_CALL_ARGS', toolCallId: event.id, delta: JSON.stringify(event.args) },
          { type: 'TOOL_CALL_END', toolCallId: event.id },
        ]
        break
      case 'callStart':
        args.set(event.id, { name: event.name, text: '' })
        yield start(event)
        break
      case 'callArgs':
        args.get(event.id).text += event.delta
        yield { type: 'TOOL_CALL_ARGS', toolCallId: event.id, delta: event.delta }
        break
      case 'callEnd':
        args.get(event.id).args = event.args
        yield { type: 'TOOL_CALL_END', toolCallId: event.id }
        break
      case 'ask': {
        const asked = args.get(event.call)
        yield {
          type: 'CUSTOM',
          name: 'approval-requested',
          value: {
            toolCallId: event.call,
            toolName: asked.name,
            input: asked.args,
            approval: { id: event.ap, needsApproval: true, options: ['deny', 'once'] },
          },
        }
        break
      }
      case 'result':
        yield result(event, event.output)
        break
      case 'resultError':
        yield result(event, { type: 'execution-error', reason: event.error }, 'error')
        break
      case 'denied':
        yield result(event, { type: 'execution-denied' }, 'denied')
        break
      case 'finish':
        yield [...endText(), { type: 'RUN_FINISHED', ...run, metadata: { finishReason: event.reason } }]
        break
      case 'error':
        yield { type: 'RUN_ERROR', message: event.message }
        break
      default:
        throw new Error(`unknown event ${event.t}`)
    }
  }
}
