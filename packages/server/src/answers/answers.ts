import { isRecord, type ResumeEntry } from '@countersign/core'
import type { CallSite } from '../history/history.js'
import { asString, readOwn } from '../history/metadata.js'
import type { RunContext } from '../scope/run-context.js'
import { peekApprovalId } from '../tokens/token.js'
import { type RecordedDecision, readDecisions } from './collect.js'

/** An answer as received; nothing about it is verified yet. */
export interface Answer {
  /** How it arrived, in order of precedence: an open run, this request's `resume`, decisions in the history, results of the approval tool. */
  readonly via: 'live' | 'resume' | 'history' | 'projection'
  readonly approvalId: string
  /** `cancelled`: the user moved on. */
  readonly status: 'resolved' | 'cancelled'
  readonly payload: unknown
  /** The token sent with the answer itself. */
  readonly token: unknown
  /** The run whose request first carried the answer, according to the client. */
  readonly sentIn?: string | undefined
  /** The context of the request that brought it. */
  readonly context: RunContext
  /** The call it seems to be for. */
  readonly site: CallSite | undefined
}

/** Every answer of a request, in order of precedence. A decision in the history whose call has a result is a record, not an answer. */
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

/** Converts an entry of `resume` to an answer. */
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

/** The client decides how long its ids are, so a longer one is cut, and compared as cut. */
function readRunId(value: unknown): string | undefined {
  return asString(value)?.slice(0, 200)
}

/** The last call of each approval according to the calls' metadata: by the approval's id, or by the id in its token. */
function sitesByApproval(sites: readonly CallSite[]): ReadonlyMap<string, CallSite> {
  const found = new Map<string, CallSite>()
  for (const site of sites) {
    const id = approvalIdOf(site)
    if (id !== undefined) found.set(id, site)
  }
  return found
}

/** The approval that a call in the history claims to belong to. Not verified: use it to find, never to authorise. */
export function approvalIdOf(site: CallSite): string | undefined {
  const { approval, token } = readOwn(site.call.metadata)
  const id = isRecord(approval) ? asString(approval.id) : undefined
  return id ?? (typeof token === 'string' ? peekApprovalId(token) : undefined)
}
