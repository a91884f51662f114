import type { ApprovalScope, GateContext } from '@countersign/core'
import type { ReadyCall } from '../tools/call.js'

/** What a tool says about asking, from whichever of its options say it. */
export interface ApprovalTerms {
  readonly needed: boolean | ((input: never, context: GateContext) => boolean | Promise<boolean>)
  readonly message: string | ((input: never) => string) | undefined
  readonly scopes: readonly ApprovalScope[]
}

/** A tool's own options beat its `approval`, and that beats the defaults: nothing is asked, and a yes is for once. */
export function termsOf({ needsApproval, message, scopes, approval }: ReadyCall['tool']): ApprovalTerms {
  const offered = approval?.options?.filter((option) => option !== 'deny') ?? []
  return {
    needed: needsApproval ?? approval?.required ?? false,
    message: message ?? approval?.message,
    scopes: scopes ?? (offered.length > 0 ? offered : ['once']),
  }
}
