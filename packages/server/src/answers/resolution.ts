import type { ApprovalDecided, CountersignError } from '@countersign/core'
import type { CallSite } from '../history/history.js'
import type { ToolOutcome } from '../outcome.js'
import type { Refusal } from './refusals.js'

/** The outcome of one answered call. */
export type Resolution =
  | {
      readonly kind: 'result'
      readonly site: CallSite
      readonly outcome: ToolOutcome
      /** The answer that led to it. */
      readonly decided?: ApprovalDecided | undefined
      readonly refusal?: Refusal
    }
  /** An approved client tool: the client runs it now, with this input. */
  | {
      readonly kind: 'handed-out'
      readonly site: CallSite
      readonly input: unknown
      readonly decided?: ApprovalDecided | undefined
      /** It was handed out before, and the client may have it. */
      readonly isAgain?: true
    }
  /** An approved call of the model's provider: the model gets the approval, and the provider runs the call. */
  | {
      readonly kind: 'forwarded'
      readonly site: CallSite
      readonly decided?: ApprovalDecided | undefined
    }
  /** The call stays open or is closed with the refusal's code. */
  | { readonly kind: 'refused'; readonly site: CallSite; readonly refusal: Refusal }
  /** The tool threw and its `failureMode` is `throw`: the run ends with this error, once the other outcomes are reported. */
  | { readonly kind: 'threw'; readonly site: CallSite; readonly error: CountersignError }
