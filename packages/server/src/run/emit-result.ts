import type { AGUIEvent, ApprovalDecided, ToolMessage } from '@countersign/core'
import { type Refusal, refusedEvent } from '../answers/outcome.js'
import { audit } from '../scope/audit.js'
import type { RunScope } from '../scope/scope.js'

/** Reports the result of a call to the client. */
export async function emitResult(scope: RunScope, message: ToolMessage): Promise<void> {
  const { id: messageId, toolCallId, content, metadata } = message
  await scope.emit({
    type: 'TOOL_CALL_RESULT',
    messageId,
    toolCallId,
    role: 'tool',
    content,
    ...(metadata && { metadata }),
  })
}

/** Reports a refused answer to the client and the audit trail. */
export async function emitRefusal(scope: RunScope, refusal: Refusal): Promise<void> {
  const { approvalId, site, code } = refusal
  const names = site === undefined ? {} : { toolCallId: site.call.id, toolName: site.call.function.name }
  await audit(scope, { event: 'refused', approvalId, ...names, code })
  await scope.emit(refusedEvent(refusal))
}

/** An approved client tool, as the client is told to run it. */
export interface ReadyTool {
  readonly toolCallId: string
  readonly toolName: string
  readonly input: unknown
  /** The answer that allows it. */
  readonly decided?: ApprovalDecided | undefined
}

export function readyEvent({ toolCallId, toolName, input, decided }: ReadyTool): AGUIEvent {
  const value = { toolCallId, toolName, input, ...(decided !== undefined && { decided }) }
  return { type: 'CUSTOM', name: 'client-tool-ready', value }
}
