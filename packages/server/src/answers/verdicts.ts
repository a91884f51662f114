import type { ApprovalErrorCode } from '@countersign/core'
import { readArguments } from '../encoding/canonical.js'
import { type CallSite, isProviderExecuted, providerApprovalOf } from '../history/history.js'
import { readOwn } from '../history/metadata.js'
import type { ApprovalRef, ApprovalScope, LedgerEntry } from '../ledger/ledger.js'
import type { Verdict } from '../plan/plan.js'
import { readDecision } from '../plan/read-decision.js'
import type { RunContext } from '../scope/run-context.js'
import type { RunScope } from '../scope/scope.js'
import { CHECK_FIRST, type TokenClaims, type TokenVerdict, verifyToken } from '../tokens/token.js'
import { boundName } from '../tools/provider-tool.js'
import type { Answer } from './answers.js'
import type { IssuedRecords } from './issued.js'
import type { Refusal } from './refusals.js'

/** A verified answer: from this owner, in time, to this server's own request for exactly this call. */
export interface VerifiedVerdict {
  readonly ref: ApprovalRef
  readonly approvalId: string
  readonly via: Answer['via']
  readonly site: CallSite
  readonly claims: TokenClaims
  /** RFC 8785 text of the arguments shown for approval. */
  readonly canonical: string
  readonly decision: Verdict['decision']
  readonly reason?: string | undefined
  readonly scope: ApprovalScope
  /** The client's id for giving this answer: the same whenever it is sent again. */
  readonly sentIn?: string | undefined
  /** The answer as it was sent. */
  readonly payload: unknown
  /** The context of the request that brought the answer. */
  readonly context: RunContext
  readonly token: string
  /** As sent: neither parsed strictly nor permitted yet. */
  readonly edits?: { readonly value: unknown } | undefined
}

type Verification =
  | { readonly ok: true; readonly verdict: VerifiedVerdict }
  | { readonly ok: false; readonly refusal: Refusal }

/**
 * Verifies the answers of a request, in order of precedence. The first verified verdict of an approval wins; an answer that does not
 * verify closes nothing, and is not reported if another one for the same approval verifies. An answer that was sent replaces what the
 * history says about its approval, even if it does not verify: it may have been meant as a denial.
 */
export async function verifyAnswers(
  scope: RunScope,
  answers: readonly Answer[],
  issued: IssuedRecords,
): Promise<{ readonly verdicts: readonly VerifiedVerdict[]; readonly refusals: readonly Refusal[] }> {
  const verdicts = new Map<string, VerifiedVerdict>()
  const refusals = new Map<string, Refusal>()
  const sent = new Set(answers.filter(({ via }) => isOfRequest(via)).map(({ approvalId }) => approvalId))
  for (const answer of answers) {
    if (verdicts.has(answer.approvalId)) continue
    if (sent.has(answer.approvalId) && !isOfRequest(answer.via)) continue
    const verified = await verifyAnswer(scope, answer, issued)
    if (verified.ok) verdicts.set(answer.approvalId, verified.verdict)
    else if (!refusals.has(answer.approvalId)) refusals.set(answer.approvalId, verified.refusal)
  }
  for (const approvalId of verdicts.keys()) refusals.delete(approvalId)
  return { verdicts: [...verdicts.values()], refusals: [...refusals.values()] }
}

async function verifyAnswer(scope: RunScope, answer: Answer, issued: IssuedRecords): Promise<Verification> {
  const located = await locate(scope, answer, issued)
  if (!located.ok) return located
  const { site, token } = located
  const refuse = (code: ApprovalErrorCode, message: string, fate?: Refusal['fate']) =>
    refused(answer, site, code, message, fate)
  const read = readArguments(site.call.function.arguments)
  if (!read.ok) return refuse('approval-tampered', 'The arguments are not those the user was shown.')
  const { approvalId, via } = answer
  const ref = { owner: scope.owner, threadId: scope.threadId, approvalId }
  const verified = await verifyCallToken(scope, token, ref, site, read.canonical)
  if (!verified.ok) {
    // An answer that came in time counts: sent again later, it gets its outcome.
    const standing = verified.check === 'exp' ? await hasAnswer(scope, ref) : 'no'
    if (standing === 'unavailable') return refuse('ledger-unavailable', LEDGER_UNAVAILABLE, 'open')
    if (verified.check !== 'exp' || standing === 'no') return refuse(verified.code, verified.message)
  }
  const decision = readDecision(answer)
  if (decision === undefined) return refuse('approval-malformed', MALFORMED)
  const { claims } = verified
  const { payload, context, sentIn } = answer
  const answered = { ref, approvalId, via, payload, context, sentIn }
  const verdict = { ...answered, site, claims, token: String(token), canonical: read.canonical, ...decision }
  return { ok: true, verdict }
}

/** Whether the user answered a request before it expired. */
async function hasAnswer(scope: RunScope, ref: ApprovalRef): Promise<'yes' | 'no' | 'unavailable'> {
  try {
    const { state } = (await scope.settings.approvals.ledger.lookup(ref)) ?? {}
    const { decision = 'expire' } = state === undefined || state.phase === 'issued' ? {} : state.answer
    return decision === 'approve' || decision === 'deny' ? 'yes' : 'no'
  } catch (error) {
    scope.settings.warn('The ledger could not be read.', error)
    return 'unavailable'
  }
}

function refused(
  { approvalId }: Answer,
  site: CallSite | undefined,
  code: ApprovalErrorCode,
  message: string,
  fate: Refusal['fate'] = 'as-found',
): Extract<Verification, { ok: false }> {
  return { ok: false, refusal: { approvalId, code, message, site, fate } }
}

type Located =
  | { readonly ok: true; readonly site: CallSite; readonly token: unknown }
  | Extract<Verification, { ok: false }>

/** Finds the call of an answer and the token to verify. A token that is present but wrong has no fallback. */
async function locate(scope: RunScope, answer: Answer, issued: IssuedRecords): Promise<Located> {
  let entry: LedgerEntry | undefined
  try {
    if (needsRecord(scope, answer)) entry = await issued.lookup(answer.approvalId)
  } catch (error) {
    scope.settings.warn('The ledger could not be read.', error)
    return refused(answer, answer.site, 'ledger-unavailable', LEDGER_UNAVAILABLE, 'open')
  }
  const site = answer.site ?? (entry && issued.siteOf(entry))
  if (site === undefined) {
    return refused(
      answer,
      site,
      'approval-not-found',
      'This conversation holds no call that the answer is for.',
    )
  }
  // `null` is a token that is present, and wrong.
  const sent = answer.token === undefined ? readOwn(site.call.metadata).token : answer.token
  const token = sent === undefined ? fallbackToken(scope, answer, entry) : sent
  return token === undefined
    ? refused(answer, site, 'approval-not-found', NO_SUCH_QUESTION)
    : { ok: true, site, token }
}

const MALFORMED =
  'The answer must say approved: true or false; reason must be text and scope "once" or "session".'
export const NO_SUCH_QUESTION = `This server did not issue this request or no longer has it. ${CHECK_FIRST}`
export const LEDGER_UNAVAILABLE = 'Approvals cannot be checked at the moment; send the answer again.'

/** Whether the ledger's record is needed to find the call, or for its token. */
function needsRecord({ settings }: RunScope, { via, site, token }: Answer): boolean {
  if (!isOfRequest(via)) return false
  if (site === undefined) return true
  const known = token === undefined ? readOwn(site.call.metadata).token : token
  return known === undefined && !settings.approvals.requireToken
}

/** Whether an answer was sent deliberately, rather than found in a history. */
function isOfRequest(via: Answer['via']): boolean {
  return via === 'resume' || via === 'live'
}

/** Some deployed clients return no token: for answers of this request only, the token in the ledger's record replaces it. */
function fallbackToken(scope: RunScope, answer: Answer, entry: LedgerEntry | undefined): string | undefined {
  return scope.settings.approvals.requireToken || !isOfRequest(answer.via) ? undefined : entry?.record.token
}

/** Whether a token was issued by this server for exactly this occurrence of a call. */
export async function verifyCallToken(
  scope: RunScope,
  token: unknown,
  ref: ApprovalRef,
  site: CallSite,
  canonical: string,
): Promise<TokenVerdict> {
  const { approvals, now } = scope.settings
  const { id, function: called } = site.call
  const isProviders = isProviderExecuted(site.call)
  // The provider identifies an approval by the id in the history, which the client could change.
  if (isProviders && providerApprovalOf(site.call) !== ref.approvalId) return OTHER_APPROVAL
  const expected = {
    ...ref,
    ledgerId: approvals.ledger.id,
    toolCallId: id,
    toolName: boundName(called.name, isProviders),
    arguments: canonical,
  }
  const verified = await verifyToken(token, expected, { keyring: approvals.keyring, now })
  if (verified.ok) return verified.claims.issuedAt < approvals.epoch ? BEFORE_EPOCH : verified
  return verified.check === 'aud' && !approvals.ledger.durable ? FORGOTTEN : verified
}

/** A ledger that ends with its process has a new id in the next one: another id was most likely its own before a restart. */
const FORGOTTEN: TokenVerdict = {
  ok: false,
  code: 'approval-not-found',
  check: 'aud',
  message: `This server lost the approval request, as in a restart. ${CHECK_FIRST}`,
}

const BEFORE_EPOCH: TokenVerdict = {
  ok: false,
  code: 'approval-not-found',
  check: 'iat',
  message: `The approval request was issued before approvals.epoch. ${CHECK_FIRST}`,
}

const OTHER_APPROVAL: TokenVerdict = {
  ok: false,
  code: 'approval-tampered',
  check: 'ap',
  message: 'The call names another provider approval than the user was shown.',
}
