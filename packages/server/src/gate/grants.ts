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
import {
  type Grant,
  type GrantKey,
  type GrantRequest,
  isScopeKey,
  MAX_SCOPE_KEY,
  scopeKeyText,
} from '../ledger/grant.js'
import type { ApprovalRecord, Ledger, LedgerAnswer } from '../ledger/ledger.js'
import type { ChosenMandate } from '../mandates/offer.js'
import { audit } from '../scope/audit.js'
import { isOfRun, type RunScope } from '../scope/scope.js'
import type { AgentSettings } from '../scope/settings.js'
import type { ReadyCall } from '../tools/call.js'
import { invalidTool } from '../tools/tool-errors.js'
import { mandateCall, mandatesText } from './mandates.js'
import { type ReplayRequest, replayMandate } from './replay.js'
import { grantsFor } from './tool-digest.js'

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
 * Finds the mandate or session grant that decides about a call; for the purpose `denial`, only what refuses it. `use` consumes one use of it
 * and is the last step before the start: a revocation or a denial that reaches the ledger before it wins, and so does one that this process
 * has made while the ledger's reply was on its way.
 */
export async function findPermission(
  scope: RunScope,
  call: ReadyCall,
  purpose: 'look' | 'use' | 'denial',
  isFirst = true,
): Promise<Permission> {
  // Providers require approval for each call. A tool of one step is not the one that a grant was given for; a denial counts all the same.
  const isDenial = purpose === 'denial'
  if (scope.owner === null || call.tool.location === 'provider') return NONE
  if (!isDenial && !isOfRun(scope, call)) return NONE
  const { epoch, ledger } = scope.settings.approvals
  const before = changesOf(ledger)
  // Not derived from the call: a client that repeats its ids must not get a use for nothing.
  const callKey = randomId('')
  try {
    const asked = await mandateCall(scope, call, callKey)
    const reads = isDenial ? 'look' : purpose
    const mandate = asked && (await ledger.findMandate?.(asked, reads))
    if (mandate?.approved === false) return { kind: 'denied', grant: mandate }
    const grant =
      isDenial || mandate !== undefined ? mandate : await findSession(scope, scope.owner, call, reads)
    const isCurrent = changesOf(ledger) === before
    if (!isCurrent && purpose !== 'use')
      return isFirst ? await findPermission(scope, call, purpose, false) : { kind: 'unknown' }
    if (grant?.approved !== true || grant.grantedAt < epoch) return NONE
    if (isCurrent) return { kind: 'granted', grant, callKey }
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
async function findSession(
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
    return undefined
  }
  const counts = await grantsFor(call.tool)
  const grant = await approvals.ledger.findGrant(key, purpose)
  return grant && counts(grant) ? grant : undefined
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

/** Records in the audit trail that a session grant or a mandate allows a call, or that a standing denial refuses it. */
export async function auditGrant(
  scope: RunScope,
  { id: toolCallId, name: toolName, canonical }: ReadyCall,
  grant: Grant,
): Promise<void> {
  const told = { toolCallId, toolName, via: 'grant' }
  const said = grant.approved
    ? ({ decision: 'approve', scope: 'session' } as const)
    : { decision: 'deny' as const }
  await audit(scope, { event: 'claimed', ...told, arguments: canonical, ...said, ...mandateName(grant) })
  if (!grant.approved) await audit(scope, { event: 'completed', ...told, outcome: 'denied' })
}

/** A mandate as the audit trail names it. Its label may contain arguments, so only the keyed hash is written. */
function mandateName({ id, terms }: Grant) {
  return terms === undefined ? {} : { mandate: { id }, shown: JSON.stringify(terms.label) }
}

/** The standing decision behind a result. Nothing for a session grant. */
export function decidedByGrant(grant: Grant): ApprovalDecided | undefined {
  if (grant.terms === undefined) return undefined
  return {
    decision: grant.approved ? 'approve' : 'deny',
    by: 'person',
    subject: grant.owner,
    at: new Date(grant.grantedAt).toISOString(),
    mandate: { id: grant.id, label: grant.terms.label },
  }
}

/** What the model is told of a call that a standing denial refuses. */
export function reasonOfDenial({ terms }: Grant): string | undefined {
  return terms?.reason ?? terms?.label
}

const changes = new WeakMap<Ledger, number>()

/** How many revocations and standing denials this process has stored in a ledger. */
function changesOf(ledger: Ledger): number {
  return changes.get(ledger) ?? 0
}

function countChange(ledger: Ledger): void {
  changes.set(ledger, changesOf(ledger) + 1)
}

/** A claimed answer, and the call that it decides about. */
interface GrantingAnswer {
  readonly answer: LedgerAnswer
  readonly call: ReadyCall
  /** The ledger's revision from the claim. */
  readonly revision: number
  readonly verdict: { readonly approvalId: string }
  readonly record?: ApprovalRecord | undefined
  readonly mandate?: ChosenMandate | undefined
}

/**
 * Stores what an approval grants beyond its call: a session grant, keyed by the arguments that ran, or the mandate that was chosen. If the
 * first fails, the answer counts for its call alone. `exceeded`: the user has chosen one mandate for several calls, and it does not cover
 * this one. `unknown`: nothing may count it, so it must not start. `again`: the call may have been tried before, and what it granted then is not granted anew.
 */
export async function grantAnswered(
  scope: RunScope,
  granting: GrantingAnswer,
  again = false,
): Promise<'exceeded' | 'unknown' | undefined> {
  if (scope.owner === null) return undefined
  const { approvals, now, warn } = scope.settings
  const { call, revision, mandate } = granting
  try {
    const request = await grantRequest(scope, scope.owner, granting)
    if (request === undefined) return undefined
    const age = again ? Math.max(0, now() - (granting.answer.at ?? 0)) : undefined
    const granted = await approvals.ledger.grant({ ...request, approved: true, revision, age })
    if (granted.status === 'granted') await auditGranted(scope, granted.grant)
    if (granted.status === 'full') warn(`A mandate for ${call.name} could not be stored: full.`)
    if (granted.status === 'uncounted') return 'unknown'
    return granted.status === 'exceeded' ? granted.status : undefined
  } catch (error) {
    warn(`No session grant could be made for ${call.name}.`, error)
    return mandate === undefined ? undefined : 'unknown'
  }
}

/** Records in the audit trail that a grant, a mandate or a standing denial was stored. */
export async function auditGranted(scope: RunScope, grant: Grant): Promise<void> {
  await audit(scope, { event: 'granted', toolName: grant.toolName, ...mandateName(grant) })
}

async function grantRequest(
  scope: RunScope,
  owner: string,
  { answer, call, record, verdict: { approvalId }, mandate }: GrantingAnswer,
): Promise<Omit<GrantRequest, 'approved'> | undefined> {
  if (mandate !== undefined) {
    const tool = { toolName: call.name, toolServer: call.tool.toolServer }
    const request = await mandateRequest({ owner, threadId: scope.threadId, ...tool }, mandate, approvalId)
    const terms = request.terms && { ...request.terms, chosenAt: answer.at }
    return { ...request, terms, call: await mandateCall(scope, call, approvalId), askedAt: record?.issuedAt }
  }
  const isSession = answer.decision === 'approve' && answer.scope === 'session'
  return isSession ? { ...grantKey(scope, owner, call), tool: record?.tool } : undefined
}

async function mandateRequest(
  key: Omit<GrantKey, 'scopeKey'>,
  { tool, offer }: ChosenMandate,
  approvalId: string,
  reason?: string,
): Promise<Omit<GrantRequest, 'approved'>> {
  const { label, where, budget, uses, expiresIn } = offer
  return {
    ...{ ...key, scopeKey: await sha256(mandatesText({ tool, offers: [offer] }) ?? '') },
    ...{ uses, ttl: expiresIn === undefined ? undefined : expiresIn * 1000 },
    terms: { label, where, budget, tool, approvalId, reason },
  }
}

/**
 * Stores the standing denial that was chosen with an answer, before the answer is claimed: if it can't be stored, the request stays open, and
 * the same answer can be sent again. Storing it again changes nothing. A revocation of something else does not void it.
 */
export async function storeDenial(
  scope: RunScope,
  { threadId, approvalId, toolName, toolServer }: ApprovalRecord,
  denial: ChosenMandate,
  reason: string | undefined,
): Promise<Grant | 'full' | 'failed'> {
  const { approvals, warn } = scope.settings
  if (scope.owner === null) return 'failed'
  try {
    const key = { owner: scope.owner, threadId, toolName, toolServer }
    const request = await mandateRequest(key, denial, approvalId, reason)
    const granted = await approvals.ledger.grant({ ...request, approved: false })
    countChange(approvals.ledger)
    if (granted.status === 'granted') return granted.grant
    warn(`A standing denial for ${toolName} could not be stored: ${granted.status}.`)
    return granted.status === 'full' ? 'full' : 'failed'
  } catch (error) {
    warn(`A standing denial for ${toolName} could not be stored.`, error)
    return 'failed'
  }
}

/**
 * Takes back the standing denials that were chosen with an answer that did not count: this one, or all of a request except the one that
 * counted. If that fails they stay, listed and revocable: better one refusal too many.
 */
export async function takeDenialsBack(
  { settings, owner }: RunScope,
  { threadId, approvalId }: ApprovalRecord,
  which: { readonly only: Grant } | { readonly except: Grant | undefined },
): Promise<void> {
  if (owner === null) return
  const { ledger } = settings.approvals
  try {
    const stored = 'only' in which ? [which.only] : await ledger.list(owner, threadId)
    const isVoid = ({ id, terms }: Grant) =>
      'only' in which || (terms?.approvals?.includes(approvalId) && id !== which.except?.id)
    for (const { id } of stored.filter(isVoid)) await ledger.revoke({ owner, id, approvalId })
  } catch (error) {
    settings.warn('A standing denial could not be removed; it counts.', error)
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
  const message = `scopeKey of the tool ${tool} must return text of at most ${MAX_SCOPE_KEY} characters, a number or a boolean; it is ${inWords(key)}: each call needs approval.`
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
   * revoked, of suspended ones too. `gone` aborts when its caller waits no longer, here and in `replay`.
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

/** A tool that this agent does not have may be one of another agent. */
async function isInForce({ toolkit, approvals }: AgentSettings, grant: Grant): Promise<boolean> {
  if (!grant.approved) return grant.terms !== undefined
  const tool = toolkit.get(grant.toolName)
  const isOurs = tool !== undefined && tool.toolServer === grant.toolServer
  return grant.grantedAt >= approvals.epoch && (!isOurs || (await grantsFor(tool))(grant))
}

export function sessionGrants(settings: AgentSettings, outside: Outside): SessionGrants {
  const { ledger } = settings.approvals
  const reached = <Result>(work: Promise<Result>): Promise<Result> =>
    work.catch((error: unknown) => {
      if (isLeft(error) || (isCountersignError(error) && error.code === 'approval-not-found')) throw error
      settings.warn('The ledger could not be reached for session approvals.', error)
      const message = 'Session approvals can be neither read nor ended at the moment; try again.'
      throw new CountersignError('ledger-unavailable', message, { status: 503 }, error)
    })
  const list: SessionGrants['list'] = async (subject, threadId) => {
    const grants = await reached(ledger.list(subject, threadId))
    const areInForce = await Promise.all(grants.map((grant) => isInForce(settings, grant)))
    return grants.filter((_, index) => areInForce[index])
  }
  return {
    list,
    replay: (subject, request, gone) =>
      outside((leave) => reached(replayMandate(settings, subject, request, leave)), gone),
    async revoke(subject, { threadId, id } = {}, gone) {
      const all = await reached(ledger.list(subject, threadId))
      // With what is suspended, but without what an approval cache denies.
      const ended = all.filter((one) => (id ?? one.id) === one.id && (one.approved || one.terms))
      const removed = await reached(ledger.revoke({ owner: subject, threadId, id }))
      countChange(ledger)
      await outside(async (leave) => {
        for (const grant of ended) {
          const scope = { settings, owner: subject, threadId: grant.threadId, leave }
          await audit(scope, { event: 'revoked', toolName: grant.toolName, ...mandateName(grant) })
        }
      }, gone)
      // One whose last use is being taken is not listed, but removed.
      return id === undefined ? ended.length : removed
    },
  }
}
