import { CountersignError } from '@countersign/core'
import { copyOf } from '../encoding/copy.js'
import { ignoreRejection, inWords } from '../encoding/in-words.js'
import { type Grant, type GrantRequest, isScopeKey, scopeKeyText } from '../ledger/grant.js'
import type { Ledger, LedgerAnswer } from '../ledger/ledger.js'
import { audit } from '../scope/audit.js'
import { isOfRun, type RunScope } from '../scope/scope.js'
import type { AgentSettings } from '../scope/settings.js'
import type { ReadyCall } from '../tools/call.js'
import { invalidTool } from '../tools/tool-errors.js'

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
  throw invalidTool(
    `scopeKey of the tool ${tool} must return text, a number or a boolean, not ${inWords(key)}: each call needs approval.`,
    { tool },
  )
}

/**
 * The session grants, by user: what a settings page lists and revokes. Rejects with `ledger-unavailable` if the ledger can't be
 * reached.
 */
export interface SessionGrants {
  /** The grants that allow calls, in one thread or in all, oldest first. */
  list(subject: string, threadId?: string): Promise<readonly Grant[]>
  /**
   * Revokes one grant, all of a thread, or all. Once it resolves, no call that has not started starts by them, not even one that the gate has
   * let through already: it needs approval again. The one exception is a use that another process took before. Resolves with the number
   * revoked.
   */
  revoke(subject: string, which?: { readonly threadId?: string; readonly id?: string }): Promise<number>
}

export function sessionGrants(settings: AgentSettings): SessionGrants {
  const { epoch, ledger } = settings.approvals
  const reached = <Result>(work: Promise<Result>): Promise<Result> =>
    work.catch((error: unknown) => {
      settings.warn('The ledger could not be reached for session approvals.', error)
      const message = 'Session approvals can be neither read nor ended at the moment; try again.'
      throw new CountersignError('ledger-unavailable', message, { status: 503 }, error)
    })
  const list: SessionGrants['list'] = async (subject, threadId) => {
    const grants = await reached(ledger.list(subject, threadId))
    return grants.filter((grant) => grant.approved && grant.grantedAt >= epoch)
  }
  return {
    list,
    async revoke(subject, { threadId, id } = {}) {
      const ended = (await list(subject, threadId)).filter((grant) => id === undefined || grant.id === id)
      await reached(ledger.revoke({ owner: subject, threadId, id }))
      revocations.set(ledger, revocationsOf(ledger) + 1)
      for (const grant of ended) {
        const scope = { settings, owner: subject, threadId: grant.threadId }
        await audit(scope, { event: 'revoked', toolName: grant.toolName })
      }
      return ended.length
    },
  }
}
