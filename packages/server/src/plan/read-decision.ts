import type { ResumeEntry } from '@countersign/core'
import { readDecision } from '../answers/answers.js'
import type { ToolApprovalResponsePart } from '../prompt/parts.js'
import type { Verdict } from './plan.js'

/**
 * Converts an answer to a verdict for a planner: an entry of `resume` or of a live queue, or the response part of a prompt. Undefined if
 * it is malformed. Edited arguments are dropped; only an agent's run can check those.
 */
export function verdictOf(answer: ResumeEntry | ToolApprovalResponsePart): Verdict | undefined {
  if (!('interruptId' in answer)) {
    const { approvalId: interruptId, ...payload } = answer
    return verdictOf({ interruptId, status: 'resolved', payload })
  }
  const read = readDecision(answer)
  if (read === undefined) return undefined
  const { edits: _, ...verdict } = read
  return { ...verdict, approvalId: answer.interruptId }
}
