import { getCountersignMetadata } from '@countersign/core'
import { canonicalJson, readArguments } from '../encoding/canonical.js'
import { type CallSite, isProviderExecuted, providerApprovalOf } from '../history/history.js'
import type { ApprovalRef } from '../ledger/ledger.js'
import type { RunContext } from '../scope/run-context.js'
import type { RunScope } from '../scope/scope.js'
import {
  CHECK_FIRST,
  isShownPreview,
  type TokenClaims,
  type TokenVerdict,
  verifyToken,
} from '../tokens/token.js'
import { boundName } from '../tools/provider-tool.js'
import { type Answer, approvalIdOf, type Decision, readDecision } from './answers.js'
import { nextOf } from './ask-again.js'
import { lookUp, lookUpLast } from './look-up.js'
import type { Refusal } from './outcome.js'
import type { IssuedRecords } from './records.js'

/** A verified answer: from this owner, in time, to this server's own request for exactly this call. */
export interface VerifiedVerdict
  extends Decision,
    Pick<Answer, 'via' | 'sentIn' | 'payload' | 'preview' | 'proof' | 'offered'> {
  readonly kind: 'verified'
  readonly ref: ApprovalRef
  readonly approvalId: string
  readonly site: CallSite
  readonly claims: TokenClaims
  readonly token: string
  /** RFC 8785 text of the arguments shown for approval. */
  readonly canonical: string
  /** The context of the request that brought the answer. */
  readonly context: RunContext
}

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
    if (verified.kind === 'verified') verdicts.set(answer.approvalId, verified)
    else if (!refusals.has(answer.approvalId)) refusals.set(answer.approvalId, verified)
  }
  for (const approvalId of verdicts.keys()) refusals.delete(approvalId)
  return { verdicts: [...verdicts.values()], refusals: [...refusals.values()] }
}

/** Whether an answer was sent deliberately, rather than found in a history. */
function isOfRequest(via: Answer['via']): boolean {
  return via === 'resume' || via === 'live'
}

/**
 * Verifies one answer, guard after guard; the comments name the steps of the table in docs/security.md. What the answer may do (its
 * scope, its edits, the policy) is checked by `prepareVerdicts`.
 */
async function verifyAnswer(
  scope: RunScope,
  answer: Answer,
  issued: IssuedRecords,
): Promise<VerifiedVerdict | Refusal> {
  const { approvalId, via, payload, context, sentIn, preview, proof, offered } = answer
  const { requireToken } = scope.settings.approvals
  const ref = { owner: scope.owner, threadId: scope.threadId, approvalId }
  let { site } = answer
  const refuse = (code: Refusal['code'], message: string, effect: Refusal['effect'] = 'as-found') =>
    ({ kind: 'refused', approvalId, site, code, message, effect }) as const

  // Call: the token comes with the answer, else with its call. `null` is a token that is present, and wrong: nothing replaces it.
  const tokenOf = ({ call }: CallSite) =>
    answer.token === undefined ? getCountersignMetadata(call.metadata).token : answer.token
  let token = site && tokenOf(site)

  // Call: some deployed clients return no token. For answers of this request only, the ledger's record finds the call, and has the token.
  if (isOfRequest(via) && (site === undefined || (token === undefined && !requireToken))) {
    const entry = await lookUp(scope, ref)
    // In a conversation that the server keeps, the call names the request that has replaced this one.
    const last = nextOf(entry) === undefined ? entry : await lookUpLast(scope, ref)
    if (entry === 'unavailable' || last === 'unavailable')
      return refuse('ledger-unavailable', LEDGER_UNAVAILABLE, 'open')
    site ??= last && issued.siteOf(last)
    // A call that has the token of an earlier or a later request has none of this one.
    const named = site && approvalIdOf(site)
    token = site && (named === undefined || named === approvalId) ? tokenOf(site) : answer.token
    if (token === undefined && !requireToken) token = entry?.record.token
  }
  if (site === undefined) return refuse('approval-not-found', NO_CALL)
  if (token === undefined) return refuse('approval-not-found', NO_SUCH_REQUEST)

  // What: the parse of the canonical text runs, and that text was signed.
  const read = readArguments(site.call.function.arguments)
  if (!read.ok) return refuse('approval-tampered', 'The arguments are not those the user was shown.')

  // Form, secret, signature, owner, what, when.
  const verified = await verifyCallToken(scope, token, ref, site, read.canonical)
  if (!verified.ok && verified.check !== 'exp') return refuse(verified.code, verified.message)
  if (!verified.ok) {
    // When: an answer that came in time counts; sent again later, it gets its outcome.
    const entry = await lookUp(scope, ref)
    if (entry === 'unavailable') return refuse('ledger-unavailable', LEDGER_UNAVAILABLE, 'open')
    const decision =
      entry === undefined || entry.state.phase === 'issued' ? 'none' : entry.state.answer.decision
    if (decision !== 'approve' && decision !== 'deny') return refuse(verified.code, verified.message)
  }

  // Answer: only `approved: true` approves.
  const decision = readDecision(answer)
  if (decision === undefined) return refuse('approval-malformed', MALFORMED)
  const said = { ...decision, via, payload, context, sentIn, preview, proof, offered }
  const { claims } = verified
  // Preview: what the page showed is what was sent. `prepareVerdicts` checks that of edited arguments.
  const isApproved = decision.decision === 'approve' && decision.edits === undefined
  if (isApproved && !(await wasShown(scope, answer, claims, claims.previewHash)))
    return refuse('approval-tampered', NOT_SHOWN)
  const { canonical } = read
  return { kind: 'verified', ref, approvalId, site, claims, token: String(token), canonical, ...said }
}

/**
 * Whether the preview that an answer returns is the one that it has to approve. A peer that doesn't know previews returns none; our own
 * client, which names its run, always does. `null`: the peer knows previews, and has shown none.
 */
export async function wasShown(
  { settings }: RunScope,
  { preview, sentIn }: Pick<Answer, 'preview' | 'sentIn'>,
  claims: TokenClaims,
  approved: string | undefined,
): Promise<boolean> {
  if (preview === undefined || preview === null)
    return approved === undefined || (preview === undefined && sentIn === undefined)
  const written = canonicalJson(preview)
  if (!written.ok || approved === undefined) return false
  return isShownPreview(claims, approved, written.canonical, settings.approvals.keyring)
}

const NOT_SHOWN = 'The answer does not return the preview that was sent with the request: reload the page.'
const MALFORMED =
  'The answer must say approved: true or false; reason must be text and scope "once" or "session".'
const NO_CALL = 'This conversation holds no call that the answer is for.'
export const NO_SUCH_REQUEST = `This server did not issue this request or no longer has it. ${CHECK_FIRST}`
export const LEDGER_UNAVAILABLE = 'Approvals cannot be checked at the moment; send the answer again.'

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

const OTHER_APPROVAL = {
  ...({ ok: false, code: 'approval-tampered', check: 'ap' } as const),
  message: 'The call names another provider approval than the user was shown.',
}
const BEFORE_EPOCH = {
  ...({ ok: false, code: 'approval-not-found', check: 'iat' } as const),
  message: `The approval request was issued before approvals.epoch. ${CHECK_FIRST}`,
}
/** A ledger that ends with its process has a new id in the next one: another id was most likely its own before a restart. */
const FORGOTTEN = {
  ...({ ok: false, code: 'approval-not-found', check: 'aud' } as const),
  message: `This server lost the approval request, as in a restart. ${CHECK_FIRST}`,
}
