import type { ApprovalDecided, Message, ToolMessage } from '@countersign/core'
import { canonicalJson } from '../encoding/canonical.js'
import { optionsOf } from '../gate/ask.js'
import { type CallSite, resultMessage } from '../history/history.js'
import { outcomeOf } from '../history/model-messages.js'
import type { ApprovalState, LedgerEntry, StoredOutcome } from '../ledger/ledger.js'
import { withoutWords } from '../ledger/ledger-row.js'
import { unavailable } from '../ledger/outcome.js'
import { isSuccess, type ToolOutcome } from '../outcome.js'
import type { RunScope } from '../scope/scope.js'
import { approvalIdOf } from './answers.js'
import { decidedBy } from './decided.js'
import { isAbout, type ReadHistory } from './issued.js'
import { restoreOutcome, toStored } from './stored-outcome.js'

/** A history corrected by the ledger, and the results in which the client differed. */
export interface CorrectedHistory extends ReadHistory {
  readonly corrected: readonly ToolMessage[]
}

/** Limits the single lookups, needed if the ledger can't look up calls: only the last calls are checked. */
const MAX_LOOKUPS = 1000

/**
 * Corrects a history's results of calls whose approval is settled: the ledger's record overrides the client's text. The result of a
 * client tool is known only to the client.
 */
export async function correctResults(scope: RunScope, read: ReadHistory): Promise<CorrectedHistory> {
  const settled = await readSettled(scope, read.sites)
  if (settled.size === 0) return { ...read, corrected: [] }
  const replaced = new Map<Message, ToolMessage>()
  const corrected: ToolMessage[] = []
  for (const [site, entry] of settled) {
    const right = site.result && (await rightResult(scope, site.result, entry))
    if (site.result === undefined || right === undefined) continue
    replaced.set(site.result, right)
    if (right.content !== site.result.content) corrected.push(right)
  }
  const now = new Map(
    read.sites.map((site) => [
      site,
      site.result && replaced.has(site.result) ? { ...site, result: replaced.get(site.result) } : site,
    ]),
  )
  const { entryOf, siteOf, lookup } = read.issued
  return {
    messages: replaced.size === 0 ? read.messages : read.messages.map((one) => replaced.get(one) ?? one),
    sites: [...now.values()],
    issued: {
      entryOf: (site) => entryOf(site) ?? settled.get(site),
      siteOf: (entry) => {
        const site = siteOf(entry)
        return site && now.get(site)
      },
      lookup,
    },
    corrected,
  }
}

/** The settled approval of each call that has one. If the ledger can't be read, the history stays as it is. */
async function readSettled(
  scope: RunScope,
  sites: readonly CallSite[],
): Promise<ReadonlyMap<CallSite, LedgerEntry>> {
  const found = new Map<CallSite, LedgerEntry>()
  try {
    const byCall = new Map((await ofCalls(scope, sites)).map((entry) => [entry.record.toolCallId, entry]))
    const byId = new Map([...byCall.values()].map((entry) => [entry.record.approvalId, entry]))
    for (const entry of await named(scope, sites, byCall, byId)) byId.set(entry.record.approvalId, entry)
    for (const site of sites) {
      const approvalId = approvalIdOf(site)
      const entry = (approvalId === undefined ? undefined : byId.get(approvalId)) ?? byCall.get(site.call.id)
      if (entry?.record.toolCallId === site.call.id && isAbout(entry, site)) found.set(site, entry)
    }
  } catch (error) {
    scope.settings.warn('The ledger could not be read.', error)
  }
  return found
}

/** Whether the ledger can look up this owner's calls. Without a subject all are the same owner, and only approval ids tell users apart. */
function knowsCalls({ settings, owner }: RunScope): boolean {
  return owner !== null && settings.approvals.ledger.settled !== undefined
}

async function ofCalls(scope: RunScope, sites: readonly CallSite[]): Promise<readonly LedgerEntry[]> {
  const { settings, owner, threadId } = scope
  if (!knowsCalls(scope) || sites.length === 0) return []
  const ids = new Set(sites.map(({ call }) => call.id))
  return (await settings.approvals.ledger.settled?.(owner, threadId, [...ids])) ?? []
}

/** Looks up other approvals that calls name: call ids may repeat across turns, and the last approval with an id may be another call's. */
async function named(
  scope: RunScope,
  sites: readonly CallSite[],
  byCall: ReadonlyMap<string, LedgerEntry>,
  byId: ReadonlyMap<string, LedgerEntry>,
): Promise<readonly LedgerEntry[]> {
  const { settings, owner, threadId } = scope
  const wanted = new Set<string>()
  for (const site of sites) {
    const approvalId = approvalIdOf(site)
    if (approvalId === undefined || byId.has(approvalId)) continue
    if (!knowsCalls(scope) || byCall.has(site.call.id)) wanted.add(approvalId)
  }
  const refs = [...wanted].slice(-MAX_LOOKUPS).map((approvalId) => ({ owner, threadId, approvalId }))
  const entries = await Promise.all(refs.map((ref) => settings.approvals.ledger.lookup(ref).then(brief)))
  return entries.flatMap((entry) => (entry?.state.phase === 'done' ? [entry] : []))
}

/** Drops the long texts written by users: there may be many entries, and nobody reads the texts here. */
function brief(entry: LedgerEntry | undefined): LedgerEntry | undefined {
  return entry && { ...entry, state: withoutWords(entry.state) }
}

/** The ledger's result, if the client's differs. */
async function rightResult(
  scope: RunScope,
  result: ToolMessage,
  { record, state }: LedgerEntry,
): Promise<ToolMessage | undefined> {
  if (state.phase !== 'done') return undefined
  const kept = restoreOutcome(state.outcome)
  if (kept.kind === 'handed-out') return undefined
  const said = outcomeOf(result)
  if (await isSame(said, kept.outcome, state.outcome)) return undefined
  return resultMessage(result.id, result.toolCallId, kept.outcome, {
    decided: decidedIn(scope, record, state),
  })
}

function decidedIn(
  scope: RunScope,
  { scopes }: LedgerEntry['record'],
  { answer }: Extract<ApprovalState, { phase: 'done' }>,
): ApprovalDecided {
  return decidedBy(scope, answer, optionsOf(scope, scopes))
}

/** For an outcome that was too large to keep, the ledger still has the hash. */
async function isSame(said: ToolOutcome, kept: ToolOutcome, stored: StoredOutcome): Promise<boolean> {
  if (stored.type === 'unavailable') {
    const outcome = toStored(said)
    return outcome.type !== 'interrupted' && (await unavailable(outcome)).hash === stored.hash
  }
  return textOf(said) === textOf(kept)
}

/** Equal outcomes have equal texts, even if a store does not keep the order of members. */
function textOf(outcome: ToolOutcome): string {
  const plain = isSuccess(outcome)
    ? [outcome.value]
    : [outcome.kind, outcome.reason ?? null, outcome.code ?? null]
  const written = canonicalJson(plain)
  return written.ok ? written.canonical : JSON.stringify(plain)
}
