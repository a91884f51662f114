import type { AGUIEvent, ApprovalDecided, ApprovalErrorCode, CountersignError } from '@countersign/core'
import { type ApprovalRequest, optionsOf } from '../gate/ask.js'
import type { CallSite } from '../history/history.js'
import type {
  ApprovalScope,
  LedgerAnswer,
  ToolOutcome as RanOutcome,
  StoredOutcome,
} from '../ledger/ledger.js'
import { settledOutcome } from '../ledger/ledger-row.js'
import { failed, isSuccess, type ToolOutcome } from '../outcome.js'
import type { RunScope } from '../scope/scope.js'
import { NOT_STARTED } from '../tools/execute.js'

/** What became of a call that had no result, and the answer that was refused for it, if any. */
export type CallOutcome = { readonly site: CallSite; readonly refusal?: Refusal | undefined } & (
  | {
      readonly kind: 'result'
      readonly outcome: ToolOutcome
      /** The answer that led to it. */
      readonly decided?: ApprovalDecided | undefined
    }
  /** An approved client tool: the client runs it now, with this input. `isAgain`: it was handed out before, and the client may have it. */
  | {
      readonly kind: 'handed-out'
      readonly input: unknown
      readonly decided?: ApprovalDecided | undefined
      readonly isAgain?: boolean
    }
  /** An approved call of the model's provider: the model gets the approval, and the provider runs the call. */
  | { readonly kind: 'forwarded'; readonly decided?: ApprovalDecided | undefined }
  /** A call that the client has already, or that needs no approval. */
  | { readonly kind: 'client' }
  /** A valid approval request, with its own token. `isAnothers`: no user who sees it here can answer it. */
  | { readonly kind: 'open'; readonly request: ApprovalRequest; readonly isAnothers: boolean }
  /** The preview had changed, so nothing ran, and this new request replaces the one that was answered. */
  | { readonly kind: 'asked-again'; readonly request: ApprovalRequest }
  /** The tool threw and its `failureMode` is `throw`: the run ends with this error, once the other outcomes are reported. */
  | { readonly kind: 'threw'; readonly error: CountersignError }
)

export interface Refusal {
  readonly kind: 'refused'
  /** Undefined: no answer is refused. What was requested for the call can't be read now. */
  readonly approvalId: string | undefined
  readonly code: ApprovalErrorCode
  readonly message: string
  /** The call it was for, if found. */
  readonly site?: CallSite | undefined
  /**
   * What happens to the call. `as-found`: the answer itself was not accepted, so the call stays open if its own token is valid, and is
   * closed otherwise. `open`: the request can be answered again (the ledger was unreachable, the call is running, or the edits were
   * invalid). `close`: it can't.
   */
  readonly effect: 'as-found' | 'open' | 'close'
}

/** Another answer is being carried out, and takes longer than a run may wait for it. */
export function stillRunning({ approvalId, site }: Pick<Refusal, 'approvalId' | 'site'>): Refusal {
  const message =
    'An approved call is still running, and the conversation continues once it has ended. Try again later.'
  return { kind: 'refused', approvalId, site, code: 'call-running', message, effect: 'open' }
}

/** The ledger fails, so what became of the call is unknown, and its request can't be closed. */
export function notClosed({ approvalId, site }: Pick<Refusal, 'approvalId' | 'site'>): Refusal {
  const message =
    'The ledger failed, so it is not known what became of this call. Nothing else was done. Try again later.'
  return { kind: 'refused', approvalId, site, code: 'ledger-unavailable', message, effect: 'open' }
}

/** The event that reports a refusal to the client; the run continues. */
export function refusedEvent({ approvalId, code, message, site }: Refusal): AGUIEvent {
  const toolCallId = site?.call.id
  const value = { approvalId, ...(toolCallId !== undefined && { toolCallId }), code, message }
  return { type: 'CUSTOM', name: 'approval-refused', value }
}

/** Adds who gave an answer and when, as the ledger stores it: a repeat reports the first answer, not itself. */
export function stampAnswer(
  { settings }: Pick<RunScope, 'settings'>,
  answer: LedgerAnswer,
  by: NonNullable<LedgerAnswer['by']>,
): LedgerAnswer {
  return { ...answer, by, at: settings.now() }
}

/** The decision behind a result, as in `metadata.countersign.decided`. `scopes` are those that were offered, if known. */
export function decidedBy(
  scope: Pick<RunScope, 'owner'>,
  answer: LedgerAnswer,
  scopes: readonly ApprovalScope[] | undefined,
): ApprovalDecided {
  const { decision, by = 'person', at } = answer
  return {
    decision,
    ...(decision === 'approve' && { scope: answer.scope }),
    ...(decision === 'approve' && answer.arguments !== undefined && editedInput(answer.arguments)),
    ...(scopes !== undefined && { options: optionsOf(scope, scopes) }),
    by,
    ...(by === 'person' && scope.owner !== null && { subject: scope.owner }),
    ...(at !== undefined && { at: new Date(at).toISOString() }),
  }
}

/** A ledger's list has no text of the arguments, only that there is one. */
function editedInput(text: string): Pick<ApprovalDecided, 'edited' | 'input'> {
  return text === '' ? { edited: true } : { edited: true, input: JSON.parse(text) }
}

/** How a call ended that is not left to its client or provider. */
export type EndedOutcome = Exclude<RanOutcome | StoredOutcome, { type: 'handed-out' }>

/**
 * Why a claimed call does not start now. This is no outcome yet: what becomes of the call depends on whether it may have run before, and
 * only {@link outcomeOfUnstarted} decides that. A `because` is a sentence without its full stop.
 */
export type Unstarted =
  /** By the policy or a standing denial. */
  | { readonly why: 'forbidden'; readonly reason: string | undefined }
  | {
      readonly why: 'stale'
      readonly because: string
      readonly code: 'approval-stale' | 'ledger-unavailable'
    }
  | { readonly why: 'expired' }
  | { readonly why: 'stopped' }
  /** Its claim was lost, and nothing more is known. */
  | { readonly why: 'lost' }

/** The outcome of a claimed call that does not start now. Once it may have run, no refusal says that it has not. */
export function outcomeOfUnstarted(
  unstarted: Unstarted,
  mayHaveRun: boolean,
): Extract<RanOutcome, { type: 'denied' | 'cancelled' | 'interrupted' }> {
  if (mayHaveRun) return { type: 'interrupted', message: `${MAY_HAVE_RUN} ${notAgain(unstarted)}` }
  switch (unstarted.why) {
    case 'forbidden':
      return { type: 'denied', reason: unstarted.reason }
    case 'stale':
      return { type: 'cancelled', reason: `${unstarted.because}; ask again.`, code: unstarted.code }
    case 'expired':
      return { type: 'cancelled', code: 'approval-expired' }
    case 'stopped':
      return { type: 'cancelled', reason: NOT_STARTED }
    case 'lost':
      return { type: 'interrupted' }
    default:
      return unstarted satisfies never
  }
}

function notAgain(unstarted: Unstarted): string {
  switch (unstarted.why) {
    case 'forbidden':
      return `It was not tried again. ${unstarted.reason ?? 'It is not allowed any more.'}`
    case 'stale':
      return `It was not tried again. ${unstarted.because}.`
    case 'expired':
      return 'It was not tried again. The approval has expired.'
    case 'stopped':
      return 'It was not tried again. The run was stopped.'
    case 'lost':
      return 'It was not tried again here.'
    default:
      return unstarted satisfies never
  }
}

/** Restores an outcome from the ledger: a repeated answer gets the same one as the first. */
export function restoreOutcome(stored: EndedOutcome): ToolOutcome {
  switch (stored.type) {
    case 'result':
      return { kind: 'ok', value: JSON.parse(stored.content) }
    case 'error':
      return failed('execution_error', stored.message, stored.code)
    case 'denied':
      return failed('denied', stored.reason)
    case 'cancelled':
      return failed('cancelled', stored.reason ?? reasonOf(stored.code), stored.code)
    case 'interrupted':
      return interruptedOutcome(stored.message)
    case 'unavailable':
      return failed('execution_error', UNAVAILABLE, 'result-unavailable')
    default:
      return stored satisfies never
  }
}

const UNAVAILABLE = 'The call ran before; its result is no longer available.'

export function toStored(outcome: ToolOutcome): Extract<StoredOutcome, { type: 'result' | 'error' }> {
  if (isSuccess(outcome)) return { type: 'result', content: JSON.stringify(outcome.value ?? null) }
  return { type: 'error', message: outcome.reason ?? 'The tool failed.', code: outcome.code }
}

export function outcomeOfAnswer(answer: LedgerAnswer): ToolOutcome {
  const settled = settledOutcome(answer)
  return settled === undefined ? interruptedOutcome() : restoreOutcome(settled)
}

/** The outcome of a call whose holder was lost. */
export function interruptedOutcome(reason?: string): ToolOutcome {
  return failed('execution_error', reason ?? MAY_HAVE_RUN, 'interrupted')
}

const MAY_HAVE_RUN = 'It was interrupted; it may or may not have run.'

/** The outcome of a call that was handed to a page whose result never arrived. */
export function handedOutOutcome(): ToolOutcome {
  return interruptedOutcome(
    'It was handed to a page, which has not sent its result; it may or may not have run.',
  )
}

/** Why the server closed a call, if only the code was kept. */
function reasonOf(code: ApprovalErrorCode | undefined): string | undefined {
  if (code === undefined) return undefined
  // The model must not claim that nothing happened.
  if (code === 'approval-not-found') return 'the approval is not known any more; the call may have run'
  return code === 'approval-expired' ? 'expired' : 'the approval is not valid'
}
