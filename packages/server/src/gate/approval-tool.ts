import type { ApprovalRequest } from './ask.js'

/** The client tool that stands for a question, for clients that know approvals only so. No model may call it. */
export const APPROVAL_TOOL = 'client.requestApproval'

/**
 * The arguments of that call: what the person is shown (masked where it is masked elsewhere), and the token, without which its answer
 * is none.
 */
export function approvalToolArguments({ toolCallId, toolName, input, approval }: ApprovalRequest): string {
  const { message, options, allowEdits, expiresAt, display, token } = approval
  return JSON.stringify({
    toolName,
    toolCallId,
    args: display === undefined ? input : display,
    ...(display !== undefined && { masked: true }),
    message: message ?? `${toolName} needs your approval.`,
    options,
    allowEdits,
    expiresAt,
    token,
  })
}
