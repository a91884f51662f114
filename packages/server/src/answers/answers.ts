import { asString, getCountersignMetadata, isRecord, type ResumeEntry } from '@countersign/core'
import { APPROVAL_TOOL } from '../gate/approval-tool.js'
import { type CallSite, isDecided } from '../history/history.js'
import type { ApprovalScope } from '../ledger/ledger.js'
import type { RunContext } from '../scope/run-context.js'
import type { RunScope } from '../scope/scope.js'
import type { Warn } from '../scope/settings.js'
import { peekApprovalId } from '../tokens/token.js'

/** An answer as received; nothing about it is verified yet. */
export interface Answer {
  /** How it arrived, in order of precedence: an open run, this request's `resume`, decisions in the history, results of the approval tool. */
  readonly via: 'live' | 'resume' | 'history' | 'projection'
  readonly approvalId: string
  /** `cancelled`: the user moved on. */
  readonly status: 'resolved' | 'cancelled'
  readonly payload: unknown
  readonly token: unknown
  /** The run whose request first carried the answer, according to the client. */
  readonly sentIn?: string | undefined
  /** The preview that the page showed, and the proof that the server has computed it for edited arguments. */
  readonly preview?: unknown
  readonly proof?: unknown
  /** The chosen mandate as the page showed it. */
  readonly offered?: unknown
  /** The context of the request that brought it. */
  readonly context: RunContext
  /** The call it seems to be for. */
  readonly site: CallSite | undefined
}

/** Every answer of a request except those to the approval tool, in order of precedence. */
export function readAnswers(
  resume: readonly ResumeEntry[],
  sites: readonly CallSite[],
  context: RunContext,
): readonly Answer[] {
  // The last call of each approval, according to the calls' metadata.
  const byApproval = new Map(sites.map((site) => [approvalIdOf(site), site]))
  const resumed = resume.map((entry) => answerOf(entry, 'resume', byApproval.get(entry.interruptId), context))
  // A decision whose call has a result is a record, not an answer.
  const decisions = readDecisions(sites.filter(({ result }) => result === undefined))
  const recorded = decisions.map((decision): Answer => {
    const { approvalId, token, sentIn, preview, proof, offered, site, ...payload } = decision
    const sent = { payload, token, sentIn: runId(sentIn), preview, proof, offered }
    return { via: 'history', approvalId, status: 'resolved', ...sent, site, context }
  })
  return [...resumed, ...recorded]
}

export function answerOf(
  { interruptId: approvalId, status, payload, metadata }: ResumeEntry,
  via: 'live' | 'resume',
  site: CallSite | undefined,
  context: RunContext,
): Answer {
  const { token, sentIn, preview, proof, offered } = getCountersignMetadata(metadata)
  const sent = { payload, token, sentIn: runId(sentIn), preview, proof, offered }
  return { via, approvalId, status, ...sent, site, context }
}

/** The client decides how long its ids are, so a longer one is cut, and compared as cut. */
function runId(value: unknown): string | undefined {
  return asString(value)?.slice(0, 200)
}

/** A decision recorded in a history, as written there: nothing about it is verified. */
export type RecordedDecision = ReturnType<typeof readDecisions>[number]

export function readDecisions(sites: readonly CallSite[]) {
  return sites.flatMap((site) => {
    const { approval, token } = getCountersignMetadata(site.call.metadata)
    const approvalId = isRecord(approval) ? asString(approval.id) : undefined
    if (!isDecided(site.call) || !isRecord(approval) || approvalId === undefined) return []
    const { approved, reason, scope, mandate, input: editedArgs, sentIn, edited } = approval
    const { preview, proof } = isRecord(edited) ? edited : { preview: approval.preview, proof: undefined }
    const offers: readonly unknown[] = Array.isArray(approval.mandates) ? approval.mandates : []
    const offered = offers.find((one) => isRecord(one) && one.id === mandate)
    const seen = { preview, proof, offered }
    const given = { approvalId, approved, reason, scope, mandate, editedArgs, token, sentIn, ...seen }
    return [{ site, ...given }]
  })
}

/** The approval that a call in the history claims to belong to. Not verified: use it to find, never to authorise. */
export function approvalIdOf(site: CallSite): string | undefined {
  const { approval, token } = getCountersignMetadata(site.call.metadata)
  const id = isRecord(approval) ? asString(approval.id) : undefined
  return id ?? (typeof token === 'string' ? peekApprovalId(token) : undefined)
}

/**
 * Reads answers that arrived as results of the client tool for approval requests. Only a result of such a call counts, and only with
 * the token in the call's own arguments: neither an id that looks like one nor the ledger replaces it. A result that is no decision is
 * ignored with a warning; one that names another tool than the request's call is refused.
 */
export function readProjected(
  sites: readonly CallSite[],
  { settings: { warn }, context }: Pick<RunScope, 'settings' | 'context'>,
): readonly Answer[] {
  const isApproval = ({ call }: CallSite) => call.function.name === APPROVAL_TOOL
  const calls = new Map<unknown, CallSite>()
  for (const site of sites) if (!isApproval(site)) calls.set(site.call.id, site)
  return sites.flatMap((site) => {
    if (!isApproval(site) || site.result === undefined) return []
    const asked = parseObject(site.call.function.arguments)
    const about = calls.get(asked?.toolCallId)
    // A call with a result was answered before, and a result that closed the request itself is no answer.
    if (about?.result !== undefined || getCountersignMetadata(site.result.metadata).outcome !== undefined)
      return []
    const payload = readPayload(site, about, warn)
    if (payload === undefined) return []
    const token = typeof asked?.token === 'string' ? asked.token : ''
    const said = { via: 'projection', approvalId: site.call.id, status: 'resolved' } as const
    return [{ ...said, payload, token, site: about, context }]
  })
}

/** Converts `{ decision: 'approve' | 'deny', scope?, reason?, editedArgs?, toolName? }` to the payload of any other answer. */
function readPayload({ call, result }: CallSite, about: CallSite | undefined, warn: Warn): unknown {
  const said = parseObject(result?.content)
  if (said?.decision !== 'approve' && said?.decision !== 'deny') {
    warn(`The result of ${APPROVAL_TOOL} ${call.id} is no decision; the request stays open.`)
    return undefined
  }
  const { decision, scope, reason, editedArgs, toolName } = said
  if (toolName !== undefined && about !== undefined && toolName !== about.call.function.name) {
    warn(`The answer ${call.id} names another tool than its call; it is refused.`)
    return {}
  }
  const approved = decision === 'approve'
  return { approved, reason, ...(approved && { scope, editedArgs }) }
}

function parseObject(text: unknown): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = typeof text === 'string' ? JSON.parse(text) : undefined
    return isRecord(value) ? value : undefined
  } catch {
    return undefined
  }
}

export interface Decision {
  readonly decision: 'approve' | 'deny' | 'cancel'
  readonly reason?: string | undefined
  readonly scope: ApprovalScope
  /** The id of a mandate, offered or not. */
  readonly mandate?: string | undefined
  /** As sent: neither parsed strictly nor permitted yet. */
  readonly edits?: { readonly value: unknown } | undefined
}

/** Reads the payload of an answer; undefined if it is malformed. `approved` must be a boolean, and nothing replaces it. */
export function readDecision({
  status,
  payload,
}: Pick<ResumeEntry, 'status' | 'payload'>): Decision | undefined {
  if (status === 'cancelled') return { decision: 'cancel', scope: 'once' }
  if (!isRecord(payload) || typeof payload.approved !== 'boolean') return undefined
  const { approved, reason, scope, editedArgs, mandate } = payload
  if (reason !== undefined && reason !== null && typeof reason !== 'string') return undefined
  if (mandate !== undefined && mandate !== null && typeof mandate !== 'string') return undefined
  const said = {
    ...(typeof reason === 'string' && reason !== '' && { reason }),
    ...(typeof mandate === 'string' && { mandate }),
  }
  if (!approved) return { decision: 'deny', scope: 'once', ...said }
  if (scope !== undefined && scope !== null && scope !== 'once' && scope !== 'session') return undefined
  // Clients in typed languages write omitted members as `null` (`{"approved":true,"editedArgs":null}`, also `reason` and `scope`):
  // here that means no edit. Our own client never sends it.
  const edits = editedArgs === undefined || editedArgs === null ? {} : { edits: { value: editedArgs } }
  return { decision: 'approve', scope: scope ?? 'once', ...said, ...edits }
}
