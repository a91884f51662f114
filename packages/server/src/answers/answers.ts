import { isRecord, type ResumeEntry } from '@countersign/core'
import type { CallSite } from '../history/history.js'
import { asString, readOwn } from '../history/metadata.js'
import type { RunContext } from '../scope/run-context.js'
import { peekApprovalId } from '../tokens/token.js'
import { type RecordedDecision, readDecisions } from './collect.js'

/** An answer as it came in, nothing about it believed yet. */
export interface Answer {
  /** Which door, in their order: an open run, this request's `resume`, decisions in the history, results of the approval tool. */
  readonly via: 'live' | 'resume' | 'history' | 'projection'
  readonly approvalId: string
  /** `cancelled`: the person walked away. */
  readonly status: 'resolved' | 'cancelled'
  readonly payload: unknown
  /** The token that came with the answer itself. */
  readonly token: unknown
  /** The run whose request first took it along, as its client says. */
  readonly sentIn?: string | undefined
  /** Of the request that brought it. */
  readonly context: RunContext
  /** The call it seems to be for. */
  readonly site: CallSite | undefined
}

/** Every answer of a request, in door order. A decision in history whose call has its result is a record, not an answer. */
export function readAnswers(
  resume: readonly ResumeEntry[],
  sites: readonly CallSite[],
  context: RunContext,
): readonly Answer[] {
  const byApproval = sitesByApproval(sites)
  const resumed = resume.map((entry) => answerOf(entry, 'resume', byApproval.get(entry.interruptId), context))
  const recorded = readDecisions(sites.filter(({ result }) => result === undefined))
  return [...resumed, ...recorded.map((decision) => answerInHistory(decision, context))]
}

/** An entry of `resume` as an answer. */
export function answerOf(
  entry: ResumeEntry,
  via: 'live' | 'resume',
  site: CallSite | undefined,
  context: RunContext,
): Answer {
  const { token, sentIn } = readOwn(entry.metadata)
  const { interruptId: approvalId, status, payload } = entry
  return { via, approvalId, status, payload, token, sentIn: readRunId(sentIn), site, context }
}

function answerInHistory(
  { approvalId, approved, reason, scope, edits, token, sentIn, site }: RecordedDecision,
  context: RunContext,
): Answer {
  const payload = { approved, reason, scope, editedArgs: edits }
  return {
    via: 'history',
    approvalId,
    status: 'resolved',
    payload,
    token,
    sentIn: readRunId(sentIn),
    site,
    context,
  }
}

/** A client decides how long its ids are: of a longer one the beginning is kept and compared. */
function readRunId(value: unknown): string | undefined {
  return asString(value)?.slice(0, 200)
}

/** The last call of each approval, as its metadata has it: by the approval's id or by what its token says of itself. */
function sitesByApproval(sites: readonly CallSite[]): ReadonlyMap<string, CallSite> {
  const found = new Map<string, CallSite>()
  for (const site of sites) {
    const id = approvalIdOf(site)
    if (id !== undefined) found.set(id, site)
  }
  return found
}

/** The approval that a call in history claims to belong to. Not verified: good for finding, not for believing. */
export function approvalIdOf(site: CallSite): string | undefined {
  const { approval, token } = readOwn(site.call.metadata)
  const id = isRecord(approval) ? asString(approval.id) : undefined
  return id ?? (typeof token === 'string' ? peekApprovalId(token) : undefined)
}
