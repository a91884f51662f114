import type { AGUIEvent, ApprovalDecided, ToolMessage } from '@countersign/core'
import { type Refusal, refusedEvent } from '../answers/outcome.js'
import { APPROVAL_TOOL, approvalToolArguments } from '../gate/approval-tool.js'
import type { ApprovalRequest } from '../gate/ask.js'
import { audit } from '../scope/audit.js'
import type { RunScope } from '../scope/scope.js'

export async function emitResult({ emit }: Pick<RunScope, 'emit'>, message: ToolMessage): Promise<void> {
  const { id: messageId, toolCallId, content, metadata } = message
  const result = { messageId, toolCallId, role: 'tool', content, ...(metadata && { metadata }) } as const
  await emit({ type: 'TOOL_CALL_RESULT', ...result })
}

export async function emitRefusal(scope: RunScope, refusal: Refusal): Promise<void> {
  const { approvalId, site, code } = refusal
  if (approvalId === undefined) return
  const names = site === undefined ? {} : { toolCallId: site.call.id, toolName: site.call.function.name }
  await audit(scope, { event: 'refused', approvalId, ...names, code })
  await scope.emit(refusedEvent(refusal))
}

/** An approved client tool, as the client is told to run it. */
export interface ReadyTool {
  readonly toolCallId: string
  readonly toolName: string
  readonly input: unknown
  readonly decided?: ApprovalDecided | undefined
}

export function readyEvent({ toolCallId, toolName, input, decided }: ReadyTool): AGUIEvent {
  const value = { toolCallId, toolName, input, ...(decided !== undefined && { decided }) }
  return { type: 'CUSTOM', name: 'client-tool-ready', value }
}

/** Sends an approval request, in every way that is enabled. `messageId` is that of the call's message. */
export async function emitRequest(
  scope: RunScope,
  request: ApprovalRequest,
  messageId: string,
): Promise<void> {
  await emitQuestion(scope, request)
  if (!scope.settings.approvals.askAsTool) return
  const toolCallId = request.approval.id
  const start = { toolCallId, toolCallName: APPROVAL_TOOL, parentMessageId: messageId }
  await scope.emit({ type: 'TOOL_CALL_START', ...start })
  await scope.emit({ type: 'TOOL_CALL_ARGS', toolCallId, delta: approvalToolArguments(request) })
  await scope.emit({ type: 'TOOL_CALL_END', toolCallId })
}

export async function emitQuestion(scope: RunScope, request: ApprovalRequest): Promise<void> {
  return scope.emit({ type: 'CUSTOM', name: 'approval-requested', value: request })
}
