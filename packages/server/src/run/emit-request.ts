import { APPROVAL_TOOL, approvalToolArguments } from '../gate/approval-tool.js'
import type { ApprovalRequest } from '../gate/ask.js'
import type { RunScope } from '../scope/scope.js'

/** Sends an approval request, in every way that is enabled. `messageId` is that of the call's message. */
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

/** Sends an approval request as an event only. */
export async function emitQuestion(scope: RunScope, request: ApprovalRequest): Promise<void> {
  return scope.emit({ type: 'CUSTOM', name: 'approval-requested', value: request })
}
