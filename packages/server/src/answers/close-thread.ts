import { CountersignError } from '@countersign/core'
import { randomId } from '../encoding/ids.js'
import type { LedgerAnswer } from '../ledger/ledger.js'
import type { AuditedScope } from '../scope/audit.js'
import { auditSettled } from './claim.js'
import { stampAnswer } from './outcome.js'

/**
 * Cancels the approval requests of a conversation that was removed: nobody could answer them, and one that never expires would stay for ever. A
 * call that was approved is left alone. `runId`: only those of this run, which had not noticed the removal when it made them.
 *
 * @throws CountersignError `ledger-unavailable`
 */
export async function closeRequests(scope: AuditedScope, runId?: string): Promise<void> {
  const { owner, threadId, settings } = scope
  const { ledger, leaseMs } = settings.approvals
  const answer: LedgerAnswer = stampAnswer(scope, { decision: 'cancel', reason: REMOVED }, 'server')
  try {
    for (const { record, state } of await ledger.unsettled(owner, threadId)) {
      if (state.phase !== 'issued' || (runId !== undefined && record.runId !== runId)) continue
      const { status } = await ledger.claim(record, answer, randomId('holder_'), leaseMs)
      const { approvalId, toolCallId, toolName } = record
      const step = { approvalId, toolCallId, toolName, decision: answer.decision, via: 'server' }
      if (status === 'claimed') await auditSettled(scope, step, answer)
    }
  } catch (error) {
    settings.warn('The requests of a removed conversation could not be closed.', error)
    const message = 'The open approval requests could not be closed: remove the conversation again.'
    throw new CountersignError('ledger-unavailable', message, { status: 503 }, error)
  }
}

const REMOVED = 'the conversation was removed'
