import { APPROVAL_TOOL, approvalToolArguments } from '../gate/approval-tool.js'
import type { ApprovalRequest } from '../gate/ask.js'
import type { RunScope } from '../scope/scope.js'

/** Asks the person, in each way that is switched on. `messageId` is that of the call. */
export async function emitRequest(
  scope: RunScope,
  request: ApprovalRequest,
  messageId: string,
): Promise<void> {
  await emitQuestion(scope, request)
  if (!scope.settings.approvals.askAsTool) return
  const toolCallId = request.approval.id
  await scope.emit({
    type: 'TOOL_CALL_START',
    toolCallId,
    toolCallName: APPROVAL_TOOL,
    parentMessageId: messageId,
  })
  await scope.emit({ type: 'TOOL_CALL_ARGS', toolCallId, delta: approvalToolArguments(request) })
  await scope.emit({ type: 'TOOL_CALL_END', toolCallId })
}

/** Asks by the event alone. */
export function emitQuestion(scope: RunScope, request: ApprovalRequest): Promise<void> {
  return scope.emit({ type: 'CUSTOM', name: 'approval-requested', value: request })
}
