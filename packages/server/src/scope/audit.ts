import { copyOf } from '../encoding/copy.js'
import { callHook } from '../encoding/hooks.js'
import type { AuditEntry } from '../ledger/ledger.js'
import type { RunEventDetails } from '../observe/events.js'
import { RunObserver } from '../observe/run-observer.js'
import { keyedHash } from '../tokens/keys.js'
import { hashOwner } from '../tokens/token.js'
import type { RunScope } from './scope.js'

/** The engine's description of one step; time, owner and hashes are added here. */
export interface AuditStep
  extends Omit<AuditEntry, 'at' | 'ownerHash' | 'threadId' | 'argumentsHash' | 'shownHash'> {
  /** RFC 8785 text; only its keyed hash is written. */
  readonly arguments?: string | undefined
  /** All that the user was shown, as RFC 8785 text; only its keyed hash is written. */
  readonly shown?: string | undefined
}

export type AuditedScope = Pick<RunScope, 'settings' | 'owner' | 'threadId' | 'observer'> &
  Partial<Pick<RunScope, 'leave'>>

/** Appends to the ledger's audit trail, calls the application's hook and reports to its observer. Failures are logged as warnings and stop nothing. */
export async function audit(scope: AuditedScope, step: AuditStep): Promise<void> {
  const { approvals, warn } = scope.settings
  const event = observed(step)
  if (event !== undefined) scope.observer?.report(event)
  try {
    const entry = await entryOf(scope, step)
    // A copy: the hook must not change what is written.
    const told = callHook(scope.leave, () => approvals.onAudit?.(copyOf(entry)))
    const written = await Promise.allSettled([told, approvals.ledger.audit(entry)])
    for (const one of written)
      if (one.status === 'rejected') warn('The audit trail could not be written.', one.reason)
  } catch (error) {
    warn('The audit trail could not be written.', error)
  }
}

async function entryOf(scope: AuditedScope, step: AuditStep): Promise<AuditEntry> {
  const { approvals, now } = scope.settings
  const { arguments: text, shown, ...entry } = step
  const keys = await approvals.keyring.current()
  return {
    ...entry,
    at: now(),
    ownerHash: await hashOwner(keys.owner, scope.owner),
    threadId: scope.threadId,
    ...(text !== undefined && { argumentsHash: await keyedHash(keys.args, text) }),
    ...(shown !== undefined && { shownHash: await keyedHash(keys.args, shown) }),
  }
}

/** What observers learn of a step. Calls report themselves. */
function observed({
  event,
  approvalId,
  decision,
  via,
  code,
  ...step
}: AuditStep): RunEventDetails | undefined {
  const site = { toolCallId: step.toolCallId, toolName: step.toolName }
  const { toolCallId = '', toolName = '' } = site
  switch (event) {
    case 'issued':
      return { type: 'approval-requested', approvalId: approvalId ?? '', toolCallId, toolName }
    case 'claimed':
      return { type: 'approval-settled', approvalId, toolCallId, toolName, decision: decision ?? '', via }
    case 'refused':
      return { type: 'approval-refused', approvalId: approvalId ?? '', ...site, code: code ?? '' }
    case 'started':
    case 'completed':
    case 'granted':
    case 'revoked':
    case 'shadow':
      return undefined
    default:
      return event satisfies never
  }
}

type Observed = Pick<RunScope, 'settings' | 'owner' | 'threadId' | 'runId'>

export async function observerOf(scope: Observed): Promise<RunObserver | undefined> {
  const { settings, owner, threadId, runId } = scope
  const { observe, approvals, now, warn } = settings
  if (observe === undefined) return undefined
  try {
    const keys = await approvals.keyring.current()
    const ownerHash = await hashOwner(keys.owner, owner)
    return new RunObserver({ observe, run: { threadId, runId, ownerHash }, now, warn })
  } catch (error) {
    warn('A run is not observed.', error)
    return undefined
  }
}
