import type { Message, ToolCall } from '@countersign/core'
import { type RecordedDecision, readDecisions } from '../answers/answers.js'
import { isProviderExecuted, readCalls } from '../history/history.js'
import { MAX_REASON_LENGTH } from '../ledger/ledger.js'
import { failed } from '../outcome.js'
import { type PromptToolResult, toolResult } from '../prompt/parts.js'

/** A user's answer according to a history, for reading only: a run verifies it before anything runs. */
export interface CollectedApproval {
  readonly approvalId: string
  readonly toolCallId: string
  readonly approved: boolean
  readonly reason?: string
  readonly scope?: 'once' | 'session'
  /** The call it is for, if known. */
  readonly call?: ToolCall
}

export interface CollectOptions {
  /** Omits answers whose call has a result. Default `false`. */
  readonly excludeResolved?: boolean | undefined
}

/**
 * The answers in a whole history, in the order of the calls; of two for one approval, the first counts. `promptToAGUI` of
 * `@countersign/server/prompt` converts a prompt to such a history. Calls that the model's provider runs are not included.
 */
export function collectToolApprovals(
  messages: readonly Message[],
  { excludeResolved = false }: CollectOptions = {},
): { readonly approved: readonly CollectedApproval[]; readonly denied: readonly CollectedApproval[] } {
  const first = new Map<string, RecordedDecision>()
  for (const decision of readDecisions(readCalls(messages)))
    if (!first.has(decision.approvalId)) first.set(decision.approvalId, decision)
  const counted = [...first.values()].filter(
    ({ site }) => !isProviderExecuted(site.call) && !(excludeResolved && site.result !== undefined),
  )
  const saying = (approved: boolean) =>
    counted
      .filter((decision) => decision.approved === approved)
      .map((decision) => collected(decision, approved))
  return { approved: saying(true), denied: saying(false) }
}

function collected(decision: RecordedDecision, approved: boolean): CollectedApproval {
  const { approvalId, site, reason, scope } = decision
  const { call } = site
  return {
    approvalId,
    toolCallId: call.id,
    approved,
    ...(typeof reason === 'string' && { reason }),
    ...((scope === 'once' || scope === 'session') && { scope }),
    call,
  }
}

/** The results of denied calls, as a history stores them; none for an answer whose call is unknown. */
export function createDenialResults(denied: readonly CollectedApproval[]): readonly PromptToolResult[] {
  return denied.flatMap(({ call, reason }) => {
    if (call === undefined) return []
    const { id, function: called } = call
    return [toolResult({ id, name: called.name }, failed('denied', reason?.slice(0, MAX_REASON_LENGTH)))]
  })
}
