import type { ApprovalScope, GateContext } from '@countersign/core'
import type { ReadyCall } from '../tools/call.js'

/** A tool's approval terms, from whichever of its options set them. */
export interface ApprovalTerms {
  readonly needed: boolean | ((input: never, context: GateContext) => boolean | Promise<boolean>)
  readonly message: string | ((input: never) => string) | undefined
  readonly scopes: readonly ApprovalScope[]
}

/** A tool's own options override its `approval`, which overrides the defaults: no approval needed, and approvals for one call. */
export function termsOf({ needsApproval, message, scopes, approval }: ReadyCall['tool']): ApprovalTerms {
  const offered = approval?.options?.filter((option) => option !== 'deny') ?? []
  return {
    needed: needsApproval ?? approval?.required ?? false,
    message: message ?? approval?.message,
    scopes: scopes ?? (offered.length > 0 ? offered : ['once']),
  }
}
