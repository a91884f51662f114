import { type ToolMessage, type ToolOutcome, toResultContent } from '@countersign/core'
import { ownMetadata } from '../history/metadata.js'
import type { RunScope } from '../scope/scope.js'

/** Tells the client how a call ended: the event of a tool message. */
export async function emitResult(scope: RunScope, message: ToolMessage, outcome: ToolOutcome): Promise<void> {
  const { content, flag } = toResultContent(outcome)
  await scope.emit({
    type: 'TOOL_CALL_RESULT',
    messageId: message.id,
    toolCallId: message.toolCallId,
    role: 'tool',
    content,
    ...(flag !== undefined && ownMetadata({ ...flag })),
  })
}
