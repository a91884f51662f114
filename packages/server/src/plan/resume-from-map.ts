import type { Message, ResumeEntry } from '@countersign/core'
import { approvalIdOf } from '../answers/answers.js'
import { findUnansweredCalls } from '../history/history.js'
import { type PlannableCall, planApprovals, type Verdict } from './plan.js'
import { type VerdictMap, verdictsOf } from './verdict-map.js'

/**
 * Converts a request's verdicts to the `resume` of the run that carries them out: for servers that receive a map of verdicts
 * besides the history. A call without a verdict is cancelled, or left open with `onMissingVerdict: 'pending'`. The run verifies
 * every answer like any other.
 */
export function resumeFromMap(
  history: readonly Message[],
  verdicts: VerdictMap,
  options: { readonly onMissingVerdict?: 'pending' | 'cancel' | undefined } = {},
): ResumeEntry[] {
  const asked = findUnansweredCalls(history).flatMap((site) => {
    const approvalId = approvalIdOf(site)
    return approvalId === undefined ? [] : [{ toolCallId: site.call.id, approvalId }]
  })
  const { onMissingVerdict = 'cancel' } = options
  const { approved, rejected } = planApprovals(asked, verdictsOf(verdicts), { onMissingVerdict })
  return [...approved, ...rejected].map(({ call, verdict }) => entryOf(call, verdict))
}

function entryOf(
  { approvalId: interruptId }: PlannableCall & { readonly approvalId: string },
  verdict: Verdict | undefined,
): ResumeEntry {
  if (verdict === undefined) return { interruptId, status: 'cancelled' }
  const { decision, reason, scope } = verdict
  const approved = decision === 'approve'
  const payload = {
    approved,
    ...(reason !== undefined && { reason }),
    ...(approved && scope !== undefined && { scope }),
  }
  return { interruptId, status: 'resolved', payload }
}
