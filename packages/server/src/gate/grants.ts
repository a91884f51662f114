import {
  type ApprovalDecided,
  CountersignError,
  isCountersignError,
  type MandateReplay,
} from '@countersign/core'
import { sha256 } from '../encoding/bytes.js'
import { copyOf } from '../encoding/copy.js'
import { isLeft, type Outside } from '../encoding/hooks.js'
import { randomId } from '../encoding/ids.js'
import { ignoreRejection, inWords } from '../encoding/in-words.js'
import { type Grant, type GrantRequest, isScopeKey, scopeKeyText } from '../ledger/grant.js'
import type { Ledger, LedgerAnswer } from '../ledger/ledger.js'
import type { ChosenMandate } from '../mandates/offer.js'
import { audit } from '../scope/audit.js'
import { isOfRun, type RunScope } from '../scope/scope.js'
import type { AgentSettings } from '../scope/settings.js'
import type { ReadyCall } from '../tools/call.js'
import { invalidTool } from '../tools/tool-errors.js'
import { mandateCall, mandatesText } from './mandates.js'
import { type ReplayRequest, replayMandate } from './replay.js'

/** Whether a standing decision of the user's applies to a call. */
export type Permission =
  /** `callKey` is for {@link returnUse}. */
  | { readonly kind: 'granted'; readonly grant: Grant; readonly callKey: string }
  /** By a standing denial, which overrules every approval. */
  | { readonly kind: 'denied'; readonly grant: Grant }
  | { readonly kind: 'none' }
  /** The ledger can't tell: nothing is granted, and anything may be denied. */
  | { readonly kind: 'unknown' }

/**
 * Finds the mandate or session grant that decides about a call. `use` consumes one use of it and is the last step before the start: a
 * revocation that reaches the ledger before it wins, and so does one that this process has made while the ledger's reply was on its way.
 */
export async function findPermission(
  scope: RunScope,
  call: ReadyCall,
  purpose: 'look' | 'use',
): Promise<Permission> {
  // Providers require approval for each call. A tool of one step is not the one that the grant was given for.
  if (scope.owner === null || call.tool.location === 'provider' || !isOfRun(scope, call)) return NONE
  const { epoch, ledger } = scope.settings.approvals
  const before = revocationsOf(ledger)
  // Not derived from the call: a client that repeats its ids must not get a use for nothing.
  const callKey = randomId('')
  try {
    const asked = await mandateCall(scope, call, callKey)
    const mandate = asked && (await ledger.findMandate?.(asked, purpose))
    if (mandate?.approved === false) return { kind: 'denied', grant: mandate }
    const grant = mandate ?? (await findSession(scope, scope.owner, call, purpose))
    if (grant?.approved !== true || grant.grantedAt < epoch) return NONE
    if (revocationsOf(ledger) === before) return { kind: 'granted', grant, callKey }
    if (mandate !== undefined) await returnUse(scope, call, callKey)
    return NONE
  } catch (error) {
    scope.settings.warn(`Session grants could not be read for ${call.name}; approval is requested.`, error)
    // The use may have been counted although the reply was lost.
    if (purpose === 'use') await returnUse(scope, call, callKey)
    return { kind: 'unknown' }
  }
}

const NONE = { kind: 'none' } as const

/** A tool whose `scopeKey` fails has no session grants. This says nothing about an approval of one call, or a standing denial. */
function findSession(
  scope: RunScope,
  owner: string,
  call: ReadyCall,
  purpose: 'look' | 'use',
): Promise<Grant | undefined> {
  const { approvals, warn } = scope.settings
  let key: ReturnType<typeof grantKey>
  try {
    key = grantKey(scope, owner, call)
  } catch (error) {
    warn(`No session approval applies to ${call.name}, because its scopeKey failed.`, error)
    return Promise.resolve(undefined)
  }
  return approvals.ledger.findGrant(key, purpose)
}

/**
 * Gives back the use of a mandate, because its call has not started. If that fails, the use counts: better one too few than one too many.
 */
export async function returnUse(scope: RunScope, { name, tool }: ReadyCall, callKey: string): Promise<void> {
  if (scope.owner === null || tool.mandates === undefined) return
  const { owner, threadId } = scope
  try {
    const key = { owner, threadId, toolName: name, toolServer: tool.toolServer }
    await scope.settings.approvals.ledger.returnUse?.(key, callKey)
  } catch (error) {
    scope.settings.warn(`A use of a mandate for ${name} could not be given back; it counts.`, error)
  }
}

/** Records in the audit trail that a session grant or a mandate allows a call. */
export async function auditGrant(
  scope: RunScope,
  { id: toolCallId, name: toolName, canonical }: ReadyCall,
  grant: Grant,
): Promise<void> {
  const said = { decision: 'approve', scope: 'session', via: 'grant', ...mandateName(grant) } as const
  await audit(scope, { event: 'claimed', toolCallId, toolName, arguments: canonical, ...said })
}

function mandateName({ id, terms }: Grant) {
  return terms === undefined ? {} : { mandate: { id, label: terms.label } }
}

/** The standing decision behind a result. Nothing for a session grant. */
export function decidedByGrant(grant: Grant): ApprovalDecided | undefined {
  if (grant.terms === undefined) return undefined
  return {
    decision: grant.approved ? 'approve' : 'deny',
    by: 'person',
    subject: grant.owner,
    at: new Date(grant.grantedAt).toISOString(),
    ...mandateName(grant),
  }
}

/** What the model is told of a call that a standing denial refuses. */
export function reasonOfDenial({ terms }: Grant): string | undefined {
  return terms?.reason ?? terms?.label
}

const revocations = new WeakMap<Ledger, number>()

/** How many revocations of a ledger's session grants this process has made. */
function revocationsOf(ledger: Ledger): number {
  return revocations.get(ledger) ?? 0
}

/** A claimed answer, and the call that it decides about. */
interface GrantingAnswer {
  readonly answer: LedgerAnswer
  readonly call: ReadyCall
  /** The ledger's revision from the claim. */
  readonly revision: number
  readonly verdict: { readonly approvalId: string }
  readonly mandate?: ChosenMandate | undefined
}

/**
 * Stores what an answer grants beyond its call: a session grant, keyed by the arguments that ran, or the mandate that was chosen. If that
 * fails, the answer counts for its call alone.
 */
export async function grantAnswered(scope: RunScope, granting: GrantingAnswer): Promise<void> {
  const { answer, call, revision } = granting
  if (scope.owner === null) return
  const { approvals, warn } = scope.settings
  try {
    const request = await grantRequest(scope, scope.owner, granting)
    if (request === undefined) return
    const approved = answer.decision === 'approve'
    const granted = await approvals.ledger.grant({ ...request, approved, revision })
    if (granted.status !== 'granted') return
    await audit(scope, { event: 'granted', toolName: call.name, ...mandateName(granted.grant) })
  } catch (error) {
    warn(`No session grant could be made for ${call.name}.`, error)
  }
}

async function grantRequest(
  scope: RunScope,
  owner: string,
  { answer, call, verdict, mandate }: GrantingAnswer,
): Promise<Omit<GrantRequest, 'approved'> | undefined> {
  if (mandate === undefined) {
    const isSession = answer.decision === 'approve' && answer.scope === 'session'
    return isSession ? grantKey(scope, owner, call) : undefined
  }
  const { approvalId } = verdict
  const { tool, offer } = mandate
  const { label, where, budget, uses, expiresIn } = offer
  const reason = 'reason' in answer ? answer.reason : undefined
  return {
    ...{ owner, threadId: scope.threadId, toolName: call.name, toolServer: call.tool.toolServer },
    scopeKey: await sha256(mandatesText({ tool, offers: [offer] }) ?? ''),
    ...{ uses, ttl: expiresIn === undefined ? undefined : expiresIn * 1000 },
    terms: { label, where, budget, tool, approvalId, reason },
    call: await mandateCall(scope, call, approvalId),
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
  const message = `scopeKey of the tool ${tool} must return text, a number or a boolean, not ${inWords(key)}: each call needs approval.`
  throw invalidTool(message, { tool })
}

/**
 * The session grants, mandates and standing denials, by user: what a settings page lists and revokes. Rejects with `ledger-unavailable` if the ledger can't be
 * reached.
 */
export interface SessionGrants {
  /** The grants that allow calls and the mandates that allow or refuse some, in one thread or in all, oldest first. */
  list(subject: string, threadId?: string): Promise<readonly Grant[]>
  /**
   * Revokes one grant, all of a thread, or all. Once it resolves, no call that has not started starts by them, not even one that the gate has
   * let through already: it needs approval again. The one exception is a use that another process took before. Resolves with the number
   * revoked. `gone` aborts when its caller waits no longer, here and in `replay`.
   */
  revoke(
    subject: string,
    which?: { readonly threadId?: string; readonly id?: string },
    gone?: AbortSignal,
  ): Promise<number>
  /**
   * Which past requests of this user in this conversation an offered mandate would have decided. Rejects with `approval-not-found` if the
   * user has no such request.
   */
  replay(subject: string, request: ReplayRequest, gone?: AbortSignal): Promise<MandateReplay>
}

export function sessionGrants(settings: AgentSettings, outside: Outside): SessionGrants {
  const { epoch, ledger } = settings.approvals
  const reached = <Result>(work: Promise<Result>): Promise<Result> =>
    work.catch((error: unknown) => {
      if (isLeft(error) || (isCountersignError(error) && error.code === 'approval-not-found')) throw error
      settings.warn('The ledger could not be reached for session approvals.', error)
      const message = 'Session approvals can be neither read nor ended at the moment; try again.'
      throw new CountersignError('ledger-unavailable', message, { status: 503 }, error)
    })
  const list: SessionGrants['list'] = async (subject, threadId) => {
    const grants = await reached(ledger.list(subject, threadId))
    const isInForce = (grant: Grant) => grant.approved || grant.terms !== undefined
    return grants.filter((grant) => isInForce(grant) && grant.grantedAt >= epoch)
  }
  return {
    list,
    replay: (subject, request, gone) =>
      outside((leave) => reached(replayMandate(settings, subject, request, leave)), gone),
    async revoke(subject, { threadId, id } = {}, gone) {
      const ended = (await list(subject, threadId)).filter((grant) => id === undefined || grant.id === id)
      await reached(ledger.revoke({ owner: subject, threadId, id }))
      revocations.set(ledger, revocationsOf(ledger) + 1)
      await outside(async (leave) => {
        for (const grant of ended) {
          const scope = { settings, owner: subject, threadId: grant.threadId, leave }
          await audit(scope, { event: 'revoked', toolName: grant.toolName, ...mandateName(grant) })
        }
      }, gone)
      return ended.length
    },
  }
}
