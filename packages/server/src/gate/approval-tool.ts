import type { ApprovalRequest } from './ask.js'

/** The client tool that represents an approval request, for clients that support approvals only as tools. No model may call it. */
export const APPROVAL_TOOL = 'client.requestApproval'

/**
 * The arguments of that call: what the user is shown (masked as elsewhere), and the token, without which an answer does not
 * count.
 */
export function approvalToolArguments({ toolCallId, toolName, input, approval }: ApprovalRequest): string {
  const { message, options, allowEdits, expiresAt, display, preview, previous, token } = approval
  return JSON.stringify({
    toolName,
    toolCallId,
    args: display === undefined ? input : display,
    ...(display !== undefined && { masked: true }),
    message: message ?? `${toolName} needs your approval.`,
    options,
    allowEdits,
    expiresAt,
    preview,
    previous,
    token,
  })
}
