import { isRecord, parseJson } from '@countersign/core'
import type { Connection } from './connection.js'

/** The client tool that some servers call to request approval. */
const APPROVAL_TOOL = 'client.requestApproval'

/**
 * For servers that request approval only by calling the client tool `client.requestApproval`: the request becomes part of the call
 * that it is about, like any other, and the extra call and its result stay out of the conversation. Answers are sent as usual.
 *
 * @example const client = new ChatClient({ connection: withApprovalTool(fetchServerSentEvents('/api/chat')) })
 */
export function withApprovalTool(connection: Connection): Connection {
  const { connect, rejoin } = connection
  return {
    ...connection,
    connect: (...given) => fold(connect(...given)),
    ...(rejoin && { rejoin: (...given) => fold(rejoin(...given)) }),
  }
}

async function* fold(events: AsyncIterable<unknown>): AsyncGenerator<unknown> {
  const texts = new Map<unknown, string>()
  for await (const batch of events) {
    const folded = (Array.isArray(batch) ? batch : [batch]).flatMap((event) => foldEvent(event, texts))
    if (folded.length > 0) yield folded
  }
}

/** `texts` holds the arguments of the calls that represent an approval request. */
function foldEvent(event: unknown, texts: Map<unknown, string>): readonly unknown[] {
  if (!isRecord(event)) return [event]
  const { type, toolCallId: id } = event
  if (type === 'TOOL_CALL_START' && event.toolCallName === APPROVAL_TOOL) texts.set(id, '')
  const text = texts.get(id)
  if (text === undefined) return [event]
  if (type === 'TOOL_CALL_ARGS') texts.set(id, text + event.delta)
  return type === 'TOOL_CALL_END' ? question(id, text) : []
}

function question(id: unknown, text: string): readonly unknown[] {
  const asked = parseJson(text)
  if (!isRecord(asked)) return []
  const { toolCallId, toolName, args, masked, message, options, allowEdits, expiresAt, token } = asked
  const approval = { id, needsApproval: true, message, options, allowEdits, expiresAt, token }
  const value = masked
    ? { toolCallId, toolName, approval: { ...approval, display: args } }
    : { toolCallId, toolName, input: args, approval }
  return [{ type: 'CUSTOM', name: 'approval-requested', value }]
}
