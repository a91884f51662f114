import { CountersignError } from '@countersign/core'
import { copyOf } from '../encoding/copy.js'
import { ignoreRejection, inWords } from '../encoding/in-words.js'
import { type GrantRequest, isScopeKey, scopeKeyText } from '../ledger/grant.js'
import type { Ledger, LedgerAnswer } from '../ledger/ledger.js'
import { audit } from '../scope/audit.js'
import type { RunScope } from '../scope/scope.js'
import type { ReadyCall } from '../tools/call.js'

/**
 * Whether a session grant stands that lets a call run. `use` takes one use of it, and is the last thing before the start: a revocation that
 * the ledger has before that wins, and so does one that this process has ended while the ledger's word was on its way. A ledger that
 * cannot say means no.
 */
export async function hasGrant(scope: RunScope, call: ReadyCall, purpose: 'look' | 'use'): Promise<boolean> {
  // a provider asks about each call anew
  if (scope.owner === null || call.tool.location === 'provider') return false
  const { ledger } = scope.settings.approvals
  try {
    const { epoch } = scope.settings.approvals
    const before = revocationsOf(ledger)
    const grant = await ledger.findGrant(grantKey(scope, scope.owner, call), purpose)
    return grant?.approved === true && grant.grantedAt >= epoch && revocationsOf(ledger) === before
  } catch (error) {
    scope.settings.warn(`Session grants could not be read for ${call.name}; the person is asked.`, error)
    return false
  }
}

/** Tells the audit trail that a session grant speaks for a call. */
export async function auditGrant(scope: RunScope, { id: toolCallId, name: toolName, canonical }: ReadyCall) {
  const said = { decision: 'approve', scope: 'session', via: 'grant' } as const
  await audit(scope, { event: 'claimed', toolCallId, toolName, arguments: canonical, ...said })
}

const revocations = new WeakMap<Ledger, number>()

/** How often session grants of a ledger were ended by this process. */
function revocationsOf(ledger: Ledger): number {
  return revocations.get(ledger) ?? 0
}

/** Counts a revocation that the ledger has taken. */
export function countRevocation(ledger: Ledger): void {
  revocations.set(ledger, revocationsOf(ledger) + 1)
}

/** A claimed answer and the call it let run. */
interface GrantingAnswer {
  readonly answer: LedgerAnswer
  readonly call: ReadyCall
  /** The ledger's, from the claim. */
  readonly revision: number
}

/** A yes for the session becomes a grant, by the arguments that ran. One that cannot be made leaves the yes at `once`. */
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
 * What a grant for this call covers.
 *
 * @throws CountersignError `invalid-tool` where the tool's `scopeKey` answers something that is no key: it would stand for every other such.
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
    `scopeKey of the tool ${tool} must answer text, a number or a boolean, not ${inWords(key)}: its calls are asked about one by one.`,
    { tool },
  )
}
