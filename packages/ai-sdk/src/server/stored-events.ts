import { type AGUIEvent, getCountersignMetadata, isRecord, type Message } from '@countersign/core'

/** Stored messages of a reply as the events that made them. */
export function eventsOf(messages: readonly Message[]): AGUIEvent[] {
  return messages.flatMap((message, at): AGUIEvent[] => {
    const { id: messageId } = message
    switch (message.role) {
      case 'reasoning': {
        const owner = messages.slice(at).find(({ role }) => role === 'assistant')?.id ?? messageId
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
          ...toolCalls.flatMap((call) => eventsOfCall(call, messageId)),
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

type Call = NonNullable<Extract<Message, { role: 'assistant' }>['toolCalls']>[number]

function eventsOfCall(
  { id: toolCallId, function: called, metadata }: Call,
  parentMessageId: string,
): AGUIEvent[] {
  const { approval, token } = getCountersignMetadata(metadata)
  const asked = isRecord(approval) ? { toolCallId, approval: { ...approval, token } } : undefined
  return [
    {
      type: 'TOOL_CALL_START',
      toolCallId,
      toolCallName: called.name,
      parentMessageId,
      ...(metadata && { metadata }),
    },
    { type: 'TOOL_CALL_ARGS', toolCallId, delta: called.arguments },
    { type: 'TOOL_CALL_END', toolCallId, ...(metadata && { metadata }) },
    ...(asked ? [{ type: 'CUSTOM' as const, name: 'approval-requested', value: asked }] : []),
  ]
}
