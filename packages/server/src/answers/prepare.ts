import { type GateContext, isRecord, type Message, omitUndefined } from '@countersign/core'
import { canonicalJson, readArguments } from '../encoding/canonical.js'
import { isLeft } from '../encoding/hooks.js'
import { bindingOf } from '../gate/ask.js'
import { askPolicy } from '../gate/gate.js'
import { mandatesText } from '../gate/mandates.js'
import { toolDigest } from '../gate/tool-digest.js'
import { isProviderExecuted, MOVED_ON, proposedCall } from '../history/history.js'
import type { ApprovalRecord, LedgerAnswer, LedgerEntry } from '../ledger/ledger.js'
import { type ChosenMandate, exceedsBudget, type OfferedMandates, shownOffer } from '../mandates/offer.js'
import { gateContext, type RunScope } from '../scope/scope.js'
import { bindingMatches, mandatesMatch, verifyEdit } from '../tokens/token.js'
import { type ReadyCall, readCall } from '../tools/call.js'
import { ToolkitRequiredError, ToolNotFoundError } from '../tools/tool-errors.js'
import { lookUp } from './look-up.js'
import { type Refusal, stampAnswer } from './outcome.js'
import { LEDGER_UNAVAILABLE, type VerifiedVerdict, wasShown } from './verify.js'

/** What to do about a verified verdict; nothing has happened yet. */
export type Settlement = {
  readonly verdict: VerifiedVerdict
  readonly record?: ApprovalRecord | undefined
  /** An earlier attempt was interrupted. */
  readonly mayHaveRun?: boolean
} & (
  | RunSettlement
  | {
      readonly kind: 'reject'
      readonly answer: LedgerAnswer
      /** The standing denial that was chosen. */
      readonly denial?: ChosenMandate | undefined
    }
  /** `because`: the call does not fit any more, whatever the answer. */
  | { readonly kind: 'refuse'; readonly refusal: Refusal; readonly because?: string | undefined }
  /** Claimed before, by this or another run: the ledger knows the outcome, and nothing is decided again. */
  | { readonly kind: 'repeat'; readonly answer: LedgerAnswer }
)

export interface RunSettlement {
  readonly kind: 'run'
  /** The call to run, with the arguments as the user left them. */
  readonly call: ReadyCall
  readonly asked: ReadyCall
  readonly answer: LedgerAnswer
  /** The standing approval that was chosen. */
  readonly mandate?: ChosenMandate | undefined
  /** The hash of the preview that was approved, if the call has one. */
  readonly approvedPreview: string | undefined
}

/**
 * Checks every verified verdict before anything runs: tools, scope, schema, what the call was bound to, edits, and policy. The comments
 * below name the steps of the table in docs/security.md.
 *
 * @throws ToolkitRequiredError, ToolNotFoundError
 */
export async function prepareVerdicts(
  scope: RunScope,
  verdicts: readonly VerifiedVerdict[],
  messages: readonly Message[],
): Promise<readonly Settlement[]> {
  const known = await Promise.all(
    verdicts.map(async (verdict) => ({ verdict, entry: await lookUp(scope, verdict.ref) })),
  )
  const fresh = known.filter(({ entry }) => entry !== 'unavailable' && isFresh(entry))
  checkTools(
    scope,
    fresh.map(({ verdict }) => verdict),
  )
  return Promise.all(
    known.map(async ({ verdict, entry }): Promise<Settlement> => {
      if (entry === 'unavailable') return refuse(verdict, 'ledger-unavailable', LEDGER_UNAVAILABLE, 'open')
      if (isFresh(entry)) {
        const { record } = entry ?? {}
        const mayHaveRun = entry?.state.phase === 'interrupted'
        const offered = { mandates: record?.mandates, mayHaveRun }
        return { ...(await prepareVerdict(scope, verdict, offered, messages)), record, mayHaveRun }
      }
      return { kind: 'repeat', verdict, answer: answerOf(scope, verdict, editedText(verdict)) }
    }),
  )
}

/** Whether the answer is the first, or may run its call again. */
function isFresh(entry: LedgerEntry | undefined): boolean {
  if (entry === undefined || entry.state.phase === 'issued') return true
  return entry.state.phase === 'interrupted' && entry.record.idempotent
}

/** Tool: a server without it may be outdated, so the answers stay valid. Once the user has moved on, a call without its tool is closed. */
function checkTools({ toolkit, method }: RunScope, verdicts: readonly VerifiedVerdict[]): void {
  const ours = verdicts.filter(({ site }) => !site.superseded && !isProviderExecuted(site.call))
  const of = (decision: VerifiedVerdict['decision']) =>
    ours.filter((verdict) => verdict.decision === decision)
  const names = [...of('approve'), ...of('deny')].map(({ site }) => site.call.function.name)
  if (toolkit.names.length === 0 && names.length > 0) throw new ToolkitRequiredError(names, { method })
  for (const { site, canonical } of of('approve')) {
    const { name } = site.call.function
    if (toolkit.get(name) === undefined)
      throw new ToolNotFoundError(name, JSON.parse(canonical), toolkit.names, { method })
  }
}

async function prepareVerdict(
  scope: RunScope,
  verdict: VerifiedVerdict,
  { mandates, mayHaveRun }: { readonly mandates: OfferedMandates | undefined; readonly mayHaveRun: boolean },
  messages: readonly Message[],
): Promise<Settlement> {
  const { decision, claims, site } = verdict
  // Answer: without a subject nobody owns a session, so `session` counts as `once` and need not be offered.
  const isOffered = verdict.scope === 'once' || scope.owner === null || claims.scopes.includes(verdict.scope)
  if (decision === 'approve' && !isOffered)
    return refuse(verdict, 'approval-malformed', 'The answer has a scope that was not offered.')
  const mandate = await chosenMandate(scope, verdict, mandates)
  if (mandate === 'not-offered')
    return refuse(verdict, 'approval-malformed', 'The answer chooses a mandate that was not offered for it.')
  if (mandate === 'not-shown') return refuse(verdict, 'approval-mandate-refused', NOT_SHOWN, 'open')
  if (decision !== 'approve')
    return { kind: 'reject', verdict, answer: answerOf(scope, verdict), denial: mandate }
  const gate = gateContext(scope, site.call.id, messages)
  const approved = await readApproved(scope, verdict, gate)
  if ('refusal' in approved) return { kind: 'refuse', verdict, ...approved }
  const { asked, call } = approved
  if (mandate !== undefined && exceedsBudget(call.input, mandate.offer))
    return refuse(verdict, 'approval-mandate-refused', ABOVE_BUDGET, 'open')
  if (mandate !== undefined && !mayHaveRun && mandate.tool !== (await toolDigest(call.tool).catch(() => '')))
    return refuse(verdict, 'approval-mandate-refused', OTHER_VERSION, 'open')
  // Preview: that of edited arguments is asked for before.
  const isEdited = verdict.edits !== undefined && call.tool.preview !== undefined
  const approvedPreview = isEdited ? await previewOfEdits(scope, verdict, approved) : claims.previewHash
  if (isEdited && approvedPreview === undefined)
    return refuse(verdict, 'approval-edit-invalid', UNSEEN, 'open')
  // Policy: for the call as edited.
  const policy = await askPolicy(scope, call, gate)
  if (policy.decision === 'block') {
    const answer = stampAnswer(scope, { decision: 'deny', reason: policy.reason }, 'policy')
    return { kind: 'reject', verdict, answer }
  }
  const answer = answerOf(scope, verdict, call === asked ? undefined : call.canonical)
  return { kind: 'run', verdict, call, asked, answer, approvedPreview, mandate }
}

const NOT_SHOWN =
  'The mandate is not the one that was sent with the request: approve the call alone, or reload.'
const OTHER_VERSION =
  'The mandate was offered for another version of the tool, so it would let nothing through: approve the call alone.'
const ABOVE_BUDGET = 'The budget of this mandate does not cover the call itself: approve the call alone.'

/**
 * The mandate that an answer chooses: one of those signed with the request, for this decision, instead of a scope. As for a preview, our own
 * client returns what it has shown.
 */
async function chosenMandate(
  { settings }: RunScope,
  { mandate: id, decision, scope, claims, offered: shown, sentIn }: VerifiedVerdict,
  offered: OfferedMandates | undefined,
): Promise<ChosenMandate | 'not-offered' | 'not-shown' | undefined> {
  if (id === undefined) return undefined
  const isSigned = await mandatesMatch(claims, mandatesText(offered), settings.approvals.keyring)
  const offer = isSigned ? offered?.offers.find((one) => one.id === id) : undefined
  const isFor = offer?.decide === 'deny' ? decision === 'deny' : decision === 'approve' && scope === 'once'
  if (offered === undefined || offer === undefined || !isFor) return 'not-offered'
  const isShown = shown === undefined ? sentIn === undefined : isSame(shown, shownOffer(offer))
  return isShown ? { tool: offered.tool, offer } : 'not-shown'
}

function isSame(one: unknown, other: unknown): boolean {
  const [written, expected] = [canonicalJson(one), canonicalJson(other)]
  return written.ok && expected.ok && written.canonical === expected.canonical
}

/** The call of an approval: as it was shown, and as the user left it. */
interface ApprovedCall {
  readonly asked: ReadyCall
  /** The same object if nothing was edited. */
  readonly call: ReadyCall
}

/** Checks what an approval is for: its call still fits and is bound to the same, and its edits are allowed. */
export async function readApproved(
  scope: RunScope,
  verdict: VerifiedVerdict,
  gate: GateContext,
): Promise<ApprovedCall | { readonly refusal: Refusal; readonly because?: string }> {
  const refused = (code: Refusal['code'], message: string, effect: Refusal['effect'] = 'close') => ({
    refusal: refusalOf(verdict, code, message, effect),
  })
  const stale = (because: string, message = `${because}; ask again.`) => ({
    ...refused('approval-stale', message),
    because,
  })
  // Unchanged: the arguments still fit the tool, and what was bound is the same.
  const asked = await readCall(scope, proposedCall(verdict.site, verdict.canonical))
  if (!asked.ok) return stale(UNFIT, asked.failure.reason)
  if (!(await isStillBound(scope, verdict, asked.call, gate))) return stale(STALE)
  const edited = await readEdits(scope, verdict)
  // Edits: the user's mistake. Nothing has run, so the request stays open and can be answered again.
  if (!edited.ok && edited.unfit) return refused('approval-edit-invalid', edited.reason, 'open')
  if (!edited.ok) return refused('approval-malformed', edited.reason)
  return { asked: asked.call, call: edited.call ?? asked.call }
}

/** The hash of the preview that was shown for edited arguments; undefined if none was. */
async function previewOfEdits(
  scope: RunScope,
  verdict: VerifiedVerdict,
  { asked, call }: ApprovedCall,
): Promise<string | undefined> {
  const { claims, proof, preview } = verdict
  const proven = await verifyEdit(claims, call.canonical, proof, scope.settings.approvals.keyring)
  // Arguments that were edited and are again as the model made them have the preview of the request.
  const hash = proven ?? (call === asked ? claims.previewHash : undefined)
  const isShown = preview === undefined ? proven !== undefined : await wasShown(scope, verdict, claims, hash)
  return isShown ? hash : undefined
}

const UNSEEN =
  'The tool has a preview, and that of the edited arguments was not shown: request it before you approve them.'
const UNFIT = 'The arguments no longer fit the tool'
export const STALE = 'What the approval was given for has changed'

/** A verified verdict as the ledger stores it; `edited` are the arguments, if the user edited them. */
function answerOf(scope: RunScope, verdict: VerifiedVerdict, edited?: string | undefined): LedgerAnswer {
  const { decision, reason, sentIn, site, mandate } = verdict
  switch (decision) {
    case 'approve': {
      const reach = scope.owner === null ? 'once' : verdict.scope
      const more = omitUndefined({ sentIn, arguments: edited, mandate })
      return stampAnswer(scope, { decision, scope: reach, reason, ...more }, 'person')
    }
    case 'deny':
      return stampAnswer(scope, { decision, reason, ...omitUndefined({ mandate }) }, 'person')
    case 'cancel': {
      const why = reason ?? (site.superseded ? MOVED_ON : undefined)
      return stampAnswer(scope, { decision, reason: why }, 'person')
    }
    default:
      return decision satisfies never
  }
}

function refuse(
  verdict: VerifiedVerdict,
  code: Refusal['code'],
  message: string,
  effect: Refusal['effect'] = 'close',
): Settlement {
  return { kind: 'refuse', verdict, refusal: refusalOf(verdict, code, message, effect) }
}

export function refusalOf(
  { approvalId, site }: VerifiedVerdict,
  code: Refusal['code'],
  message: string,
  effect: Refusal['effect'],
): Refusal {
  return { kind: 'refused', approvalId, site, code, message, effect }
}

/** The edited arguments as the ledger compares them; undefined if there are none, or they can't be read. */
function editedText({ edits }: VerifiedVerdict): string | undefined {
  const read = edits === undefined ? undefined : readArguments(JSON.stringify(edits.value))
  return read?.ok ? read.canonical : undefined
}

/** Whether what a request was bound to, besides its arguments, is unchanged. */
export async function isStillBound(
  scope: RunScope,
  verdict: VerifiedVerdict,
  call: ReadyCall,
  gate: GateContext,
): Promise<boolean> {
  try {
    return await bindingMatches(
      verdict.claims,
      await bindingOf(scope, call, gate),
      scope.settings.approvals.keyring,
    )
  } catch (error) {
    if (isLeft(error)) throw error
    scope.settings.warn(`What ${call.name} is bound to could not be read.`, error)
    return false
  }
}

type Edits =
  | { readonly ok: true; readonly call?: ReadyCall | undefined }
  /** `unfit`: they may be edited, but not like this: they don't fit the tool's schema, or are not strict JSON. */
  | { readonly ok: false; readonly reason: string; readonly unfit?: boolean }

/** Checks edited arguments: permitted by the token, strict JSON, other keys unchanged, and valid for the schema. */
async function readEdits(
  scope: RunScope,
  { edits, canonical, claims, site }: VerifiedVerdict,
): Promise<Edits> {
  const allowed = claims.edits
  if (edits === undefined) return { ok: true }
  if (!isRecord(edits.value)) return { ok: false, reason: 'The edited arguments must be an object.' }
  const read = readArguments(JSON.stringify(edits.value))
  if (!read.ok) {
    const reason = `The edited arguments are not acceptable: ${read.reason}`
    return { ok: false, reason, unfit: allowed !== false }
  }
  if (read.canonical === canonical) return { ok: true }
  const asked: unknown = JSON.parse(canonical)
  // Arguments without keys are edited as a whole or not at all.
  if (allowed !== true && !isRecord(asked)) return { ok: false, reason: 'The arguments may not be edited.' }
  const changed = changedKeys(asked, read.value)
  const forbidden = changed.filter(
    (key) => !(allowed === true || (allowed !== false && allowed.includes(key))),
  )
  if (forbidden.length > 0)
    return { ok: false, reason: `These arguments may not be edited: ${forbidden.join(', ')}.` }
  const checked = await readCall(scope, proposedCall(site, read.canonical))
  return checked.ok
    ? checked
    : { ok: false, reason: checked.failure.reason ?? 'The edited arguments do not fit.', unfit: true }
}

function changedKeys(before: unknown, after: unknown): readonly string[] {
  const one = new Map(Object.entries(isRecord(before) ? before : {}))
  const other = new Map(Object.entries(isRecord(after) ? after : {}))
  const keys = new Set([...one.keys(), ...other.keys()])
  // Both were parsed from canonical JSON, so equal values have equal JSON.
  return [...keys].filter((key) => JSON.stringify(one.get(key)) !== JSON.stringify(other.get(key)))
}
