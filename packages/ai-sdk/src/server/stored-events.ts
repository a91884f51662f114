import {
  type AGUIEvent,
  getCountersignMetadata,
  isRecord,
  type Message,
  type UIMessage,
} from '@countersign/core'
import { fromAGUIMessages } from '@countersign/core/ag-ui'

/** Stored messages of a reply as the events that made them. */
export function eventsOf(messages: readonly Message[]): AGUIEvent[] {
  const shown = new Map(fromAGUIMessages(messages).map((message) => [message.id, message]))
  const ended = new Set(messages.flatMap((message) => (message.role === 'tool' ? message.toolCallId : [])))
  const owners = ownersOf(messages)
  return messages.flatMap((message): AGUIEvent[] => {
    const { id: messageId } = message
    switch (message.role) {
      case 'reasoning': {
        const owner = owners.get(message) ?? messageId
        const { messageId: _, ...own } = getCountersignMetadata(message.metadata)
        const metadata = { countersign: { ...own, messageId: owner } }
        return [
          { type: 'REASONING_MESSAGE_START', messageId, role: 'reasoning', metadata },
          { type: 'REASONING_MESSAGE_CONTENT', messageId, delta: message.content },
          { type: 'REASONING_MESSAGE_END', messageId, metadata },
        ]
      }
      case 'assistant': {
        const { content = '', toolCalls = [], metadata } = message
        const text: AGUIEvent[] = [
          { type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' },
          { type: 'TEXT_MESSAGE_CONTENT', messageId, delta: content },
          { type: 'TEXT_MESSAGE_END', messageId, ...(metadata && { metadata }) },
        ]
        return [
          ...(content === '' ? [] : text),
          ...toolCalls.flatMap((call) => eventsOfCall(call, messageId, ended.has(call.id))),
          ...writtenTo(message, shown.get(messageId)),
        ]
      }
      case 'activity': {
        const { activityType, content, metadata } = message
        return [
          { type: 'ACTIVITY_SNAPSHOT', messageId, activityType, content, ...(metadata && { metadata }) },
        ]
      }
      case 'tool': {
        const { toolCallId, content, metadata } = message
        return [
          {
            type: 'TOOL_CALL_RESULT',
            messageId,
            toolCallId,
            content,
            role: 'tool',
            ...(metadata && { metadata }),
          },
        ]
      }
      default:
        return []
    }
  })
}

/** The assistant's message after each of the messages. */
function ownersOf(messages: readonly Message[]): ReadonlyMap<Message, string> {
  const owners = new Map<Message, string>()
  let owner: string | undefined
  for (const message of messages.toReversed()) {
    if (message.role === 'assistant') owner = message.id
    if (owner !== undefined) owners.set(message, owner)
  }
  return owners
}

/** The sources of a message, and what the application has put into its metadata. */
function writtenTo({ id: messageId, metadata = {} }: Message, shown: UIMessage | undefined): AGUIEvent[] {
  const sources = (shown?.parts ?? []).flatMap((part): AGUIEvent[] => {
    if (part.type !== 'source') return []
    const { type: name, ...source } = part
    return [{ type: 'CUSTOM', name, value: { messageId, ...source } }]
  })
  const { countersign: _, aiSdk: __, ...own } = metadata
  if (Object.keys(own).length === 0) return sources
  return [...sources, { type: 'CUSTOM', name: 'message-metadata', value: { messageId, metadata: own } }]
}

type Call = NonNullable<Extract<Message, { role: 'assistant' }>['toolCalls']>[number]

function eventsOfCall(
  { id: toolCallId, function: called, metadata }: Call,
  parentMessageId: string,
  isEnded: boolean,
): AGUIEvent[] {
  const own = getCountersignMetadata(metadata)
  const { approval, token } = own
  const asked = isRecord(approval) ? { toolCallId, approval: { ...approval, token } } : undefined
  // Of a call that has ended, the whole input is withheld, as before an approval: at that, an SDK client would run a client tool again.
  const told = isEnded ? { countersign: { token: '', ...own } } : metadata
  return [
    {
      type: 'TOOL_CALL_START',
      toolCallId,
      toolCallName: called.name,
      parentMessageId,
      ...(metadata && { metadata }),
    },
    { type: 'TOOL_CALL_ARGS', toolCallId, delta: called.arguments },
    { type: 'TOOL_CALL_END', toolCallId, ...(told && { metadata: told }) },
    ...(asked ? [{ type: 'CUSTOM' as const, name: 'approval-requested', value: asked }] : []),
  ]
}
