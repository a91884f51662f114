import { CountersignError } from '@countersign/core'
import { copyOf } from '../encoding/copy.js'
import { ignoreRejection, inWords } from '../encoding/in-words.js'
import { type GrantRequest, isScopeKey, scopeKeyText } from '../ledger/grant.js'
import type { Ledger, LedgerAnswer } from '../ledger/ledger.js'
import { audit } from '../scope/audit.js'
import { isOfRun, type RunScope } from '../scope/scope.js'
import type { ReadyCall } from '../tools/call.js'

/**
 * Whether a session grant allows a call. `use` consumes one use of it and is the last step before the start: a revocation that reaches
 * the ledger before it wins, and so does one that this process has made while the ledger's reply was on its way. If the ledger can't
 * tell, there is no grant.
 */
export async function hasGrant(scope: RunScope, call: ReadyCall, purpose: 'look' | 'use'): Promise<boolean> {
  // Providers require approval for each call. A tool of one step is not the one that the grant was given for.
  if (scope.owner === null || call.tool.location === 'provider' || !isOfRun(scope, call)) return false
  const { ledger } = scope.settings.approvals
  try {
    const { epoch } = scope.settings.approvals
    const before = revocationsOf(ledger)
    const grant = await ledger.findGrant(grantKey(scope, scope.owner, call), purpose)
    return grant?.approved === true && grant.grantedAt >= epoch && revocationsOf(ledger) === before
  } catch (error) {
    scope.settings.warn(`Session grants could not be read for ${call.name}; approval is requested.`, error)
    return false
  }
}

/** Records in the audit trail that a session grant allows a call. */
export async function auditGrant(scope: RunScope, { id: toolCallId, name: toolName, canonical }: ReadyCall) {
  const said = { decision: 'approve', scope: 'session', via: 'grant' } as const
  await audit(scope, { event: 'claimed', toolCallId, toolName, arguments: canonical, ...said })
}

const revocations = new WeakMap<Ledger, number>()

/** How many revocations of a ledger's session grants this process has made. */
function revocationsOf(ledger: Ledger): number {
  return revocations.get(ledger) ?? 0
}

/** Counts a revocation that the ledger has confirmed. */
export function countRevocation(ledger: Ledger): void {
  revocations.set(ledger, revocationsOf(ledger) + 1)
}

/** A claimed answer and the call that it allowed. */
interface GrantingAnswer {
  readonly answer: LedgerAnswer
  readonly call: ReadyCall
  /** The ledger's revision from the claim. */
  readonly revision: number
}

/** Turns a session approval into a grant, keyed by the arguments that ran. If that fails, the approval counts as `once`. */
export async function grantSession(
  scope: RunScope,
  { answer, call, revision }: GrantingAnswer,
): Promise<void> {
  if (answer.decision !== 'approve' || answer.scope !== 'session' || scope.owner === null) return
  const { approvals, warn } = scope.settings
  try {
    const request: GrantRequest = { ...grantKey(scope, scope.owner, call), approved: true, revision }
    const { status } = await approvals.ledger.grant(request)
    if (status === 'granted') await audit(scope, { event: 'granted', toolName: call.name })
  } catch (error) {
    warn(`No session grant could be made for ${call.name}.`, error)
  }
}

/**
 * The key of a grant for this call.
 *
 * @throws CountersignError `invalid-tool` if the tool's `scopeKey` returns an invalid key: all invalid keys would be the same.
 */
function grantKey({ threadId }: RunScope, owner: string, { tool, input, name }: ReadyCall) {
  const { toolServer, scopeKey } = tool
  return {
    owner,
    threadId,
    toolName: name,
    toolServer,
    scopeKey: scopeKey ? keyText(name, scopeKey(copyOf(input) as never)) : name,
  }
}

function keyText(tool: string, key: unknown): string {
  if (isScopeKey(key)) return scopeKeyText(key)
  ignoreRejection(key)
  throw new CountersignError(
    'invalid-tool',
    `scopeKey of the tool ${tool} must return text, a number or a boolean, not ${inWords(key)}: each call needs approval.`,
    { tool },
  )
}
