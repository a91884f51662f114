import { getCountersignMetadata, type Message, type ToolCall, type ToolMessage } from '@countersign/core'
import { type CallSite, isProviderExecuted, readCalls, withoutClaimedEdits } from '../history/history.js'
import type { LedgerEntry } from '../ledger/ledger.js'
import { withoutWords } from '../ledger/row-format.js'
import type { RunScope } from '../scope/scope.js'
import { createLimiter } from '../tools/limiter.js'
import { approvalIdOf } from './answers.js'
import { isAbout, siteFinder } from './find-call.js'
import { lookUpLast } from './look-up.js'
import { rightResult } from './right-result.js'

/** The ledger's records of a thread, matched with the calls of a history. */
export interface IssuedRecords {
  /** Whether the ledger could be read. If not, a call without an entry may have one. */
  readonly isWhole: boolean
  entryOf(site: CallSite): LedgerEntry | undefined
  /** The call of a record, even if its text was altered. */
  siteOf(entry: LedgerEntry): CallSite | undefined
}

/** For calls that carry their own token. */
export const NO_RECORDS: IssuedRecords = { isWhole: true, entryOf: () => undefined, siteOf: () => undefined }

/** A client's history, corrected by the ledger. */
export interface ReadHistory {
  readonly messages: readonly Message[]
  readonly sites: readonly CallSite[]
  readonly issued: IssuedRecords
  /** The results in which the client differed. */
  readonly corrected: readonly ToolMessage[]
}

/** Whether the history has an earlier request for a call than the ledger: approval was requested again, because the preview had changed. */
export function isReplaced(site: CallSite, entry: LedgerEntry | undefined): boolean {
  return entry?.record.earlier?.includes(approvalIdOf(site) ?? '') === true
}

/**
 * Corrects a client's history by the ledger. A result of a call whose approval is still open is removed (one deployed client appends the
 * answer's payload before it resumes). For a call whose approval is settled, the ledger's record overrides the client's text, except for
 * client tools, whose result only the client knows.
 */
export async function readHistory(scope: RunScope, given: readonly Message[]): Promise<ReadHistory> {
  // Without calls there is nothing to match, and a ledger may have many open requests.
  const hasCalls = given.some((message) => message.role === 'assistant' && message.toolCalls?.length)
  const unsettled = hasCalls ? await readOpen(scope) : []
  const open = unsettled ?? []
  const history = withProviderCalls(open, withoutClaims(given))
  if (open.length === 0) return correctResults(scope, history, unsettled)
  const siteOf = siteFinder(readCalls(history))
  const claimed = new Set<Message>()
  for (const entry of open) {
    const site = siteOf(entry)
    if (site?.result === undefined || !isAbout(entry, site) || wasStored(scope, entry, site)) continue
    if (!wasReported(entry, site.result)) claimed.add(site.result)
  }
  const messages = claimed.size === 0 ? history : history.filter((message) => !claimed.has(message))
  return correctResults(scope, messages, unsettled)
}

async function correctResults(
  scope: RunScope,
  messages: readonly Message[],
  open: readonly LedgerEntry[] | undefined,
): Promise<ReadHistory> {
  const before = readCalls(messages)
  const { settled, isWhole } = await readSettled(scope, before)
  const replaced = new Map<Message, ToolMessage>()
  const corrected: ToolMessage[] = []
  const limit = createLimiter(LOOKUPS_AT_ONCE)
  const check = async ([site, entry]: readonly [CallSite, LedgerEntry]) =>
    [site.result, site.result && (await rightResult(scope, site, site.result, entry))] as const
  const checked = [...settled].map((one) => limit(() => check(one)))
  for (const [result, right] of await Promise.all(checked)) {
    if (result === undefined || right === undefined) continue
    replaced.set(result, right)
    if (right.content !== result.content) corrected.push(right)
  }
  const right = withoutClaimedEdits(messages.map((one) => replaced.get(one) ?? one))
  const sites = readCalls(right)
  const entries = new Map<CallSite, LedgerEntry>()
  sites.forEach((site, at) => {
    const entry = settled.get(before[at] ?? site)
    if (entry !== undefined) entries.set(site, entry)
  })
  const siteOf = siteFinder(sites)
  for (const entry of open ?? []) {
    const site = siteOf(entry)
    if (site !== undefined) entries.set(site, entry)
  }
  return {
    messages: right,
    sites,
    issued: { isWhole: isWhole && open !== undefined, entryOf: (site) => entries.get(site), siteOf },
    corrected,
  }
}

async function readOpen(scope: RunScope): Promise<readonly LedgerEntry[] | undefined> {
  const { settings, owner, threadId } = scope
  try {
    return await settings.approvals.ledger.unsettled(owner, threadId)
  } catch (error) {
    settings.warn('The ledger could not be read.', error)
    return undefined
  }
}

/**
 * Removes such results once the approval is settled: the one appended by the client comes before our own, which reports the outcome of the
 * decision, and would be taken for it. Ids may repeat across turns, so a result is compared only with later ones before the next such call.
 */
function withoutClaims(history: readonly Message[]): readonly Message[] {
  const settled = new Set<string>()
  const claims = new Set<Message>()
  for (let at = history.length - 1; at >= 0; at--) {
    const message = history[at]
    // Most histories have no such results, and are long.
    if (message?.role === 'assistant' && settled.size > 0)
      for (const { id } of message.toolCalls ?? []) settled.delete(id)
    if (message?.role !== 'tool' || (message.metadata === undefined && settled.size === 0)) continue
    const { decided, outcome } = getCountersignMetadata(message.metadata)
    if (decided !== undefined || outcome !== undefined) settled.add(message.toolCallId)
    else if (settled.has(message.toolCallId)) claims.add(message)
  }
  return claims.size === 0 ? history : history.filter((message) => !claims.has(message))
}

/** The ledger knows what the provider executes: a client that dropped the metadata must not turn such a call into one of ours. */
function withProviderCalls(open: readonly LedgerEntry[], history: readonly Message[]): readonly Message[] {
  const entries = open.filter(({ record }) => record.providerExecuted)
  if (entries.length === 0) return history
  const siteOf = siteFinder(readCalls(history))
  const marked = new Map<ToolCall, ToolCall>()
  for (const entry of entries) {
    const call = siteOf(entry)?.call
    if (call === undefined || isProviderExecuted(call)) continue
    const provider = { providerExecuted: true, providerApproval: entry.record.approvalId }
    const countersign = { ...getCountersignMetadata(call.metadata), ...provider }
    marked.set(call, { ...call, metadata: { ...call.metadata, countersign } })
  }
  const mark = (call: ToolCall) => marked.get(call) ?? call
  return history.map((message) =>
    message.role === 'assistant' && message.toolCalls?.some((call) => marked.has(call))
      ? { ...message, toolCalls: message.toolCalls.map(mark) }
      : message,
  )
}

/**
 * Whether the client was already sent the final result of a call that is open in the ledger: the call was interrupted, or the ledger
 * failed while the approval request was stored, so that the client never got the request.
 */
function wasReported({ state }: LedgerEntry, { metadata }: ToolMessage): boolean {
  const { outcome, code } = getCountersignMetadata(metadata)
  if (outcome !== 'error') return false
  return state.phase === 'interrupted'
    ? code === 'interrupted'
    : state.phase === 'issued' && code === 'ledger-unavailable'
}

/**
 * Whether this server has stored the result itself, but the ledger could not record it: in a conversation that it keeps, only the results of
 * client tools come from clients, and only its own name the decision behind them.
 */
function wasStored(
  { settings, toolkit }: RunScope,
  { state }: LedgerEntry,
  { call, result }: CallSite,
): boolean {
  if (settings.threads === undefined || state.phase !== 'interrupted') return false
  const { decided, outcome } = getCountersignMetadata(result?.metadata)
  const hasRun = decided !== undefined && (outcome === undefined || outcome === 'error')
  return hasRun && toolkit.get(call.function.name)?.location === 'server'
}

/** Limits the single lookups, needed if the ledger can't look up calls: only the last calls are checked. */
const MAX_LOOKUPS = 1000

/** Of those, and of those for edited calls: the client decides how many there are. */
const LOOKUPS_AT_ONCE = 16

/** The settled approval of each call that has one. If the ledger can't be read, there are fewer, and results stay as they are. */
async function readSettled(
  scope: RunScope,
  sites: readonly CallSite[],
): Promise<{ readonly settled: ReadonlyMap<CallSite, LedgerEntry>; readonly isWhole: boolean }> {
  const { settings, owner, threadId } = scope
  const { ledger } = settings.approvals
  const settled = new Map<CallSite, LedgerEntry>()
  let isWhole = true
  try {
    // Without a subject all are the same owner, and only approval ids tell users apart.
    const knowsCalls = owner !== null && ledger.settled !== undefined
    const ids = [...new Set(sites.map(({ call }) => call.id))]
    const entries = knowsCalls && ids.length > 0 ? await ledger.settled(owner, threadId, ids) : []
    const byCall = new Map(entries.map((entry) => [entry.record.toolCallId, entry]))
    const byId = new Map(entries.map((entry) => [entry.record.approvalId, entry]))
    // Call ids may repeat across turns, and the last approval with an id may be another call's.
    const named = new Set<string>()
    for (const site of sites) {
      const approvalId = approvalIdOf(site)
      if (approvalId === undefined || byId.has(approvalId)) continue
      if (!knowsCalls || byCall.has(site.call.id)) named.add(approvalId)
    }
    const find = async (approvalId: string) => {
      const entry = await lookUpLast(scope, { owner, threadId, approvalId })
      isWhole &&= entry !== 'unavailable'
      // There may be many entries, and nobody reads the long texts here.
      if (typeof entry === 'object' && entry.state.phase === 'done')
        byId.set(approvalId, { ...entry, state: withoutWords(entry.state) })
    }
    const limit = createLimiter(LOOKUPS_AT_ONCE)
    await Promise.all([...named].slice(-MAX_LOOKUPS).map((id) => limit(() => find(id))))
    for (const site of sites) {
      const last = byCall.get(site.call.id)
      const entry = isReplaced(site, last) ? last : (byId.get(approvalIdOf(site) ?? '') ?? last)
      if (entry?.record.toolCallId === site.call.id && isAbout(entry, site)) settled.set(site, entry)
    }
  } catch (error) {
    settings.warn('The ledger could not be read.', error)
    isWhole = false
  }
  return { settled, isWhole }
}

/** New results of client tools, with what the user changed the arguments of their calls to: only the ledger has it. */
export async function withEdits(
  scope: Pick<RunScope, 'settings' | 'owner' | 'threadId'>,
  messages: readonly Message[],
  from: number,
): Promise<Message[]> {
  const added = new Set<Message>(messages.slice(from).filter(({ role }) => role === 'tool'))
  const whole = new Map<Message, Message>()
  for (const site of added.size === 0 ? [] : readCalls(messages)) {
    const approvalId = approvalIdOf(site)
    if (site.result === undefined || !added.has(site.result) || approvalId === undefined) continue
    const { owner, threadId } = scope
    const entry = await lookUpLast(scope, { owner, threadId, approvalId })
    if (typeof entry !== 'object' || entry.state.phase !== 'done') continue
    if (entry.state.outcome.type !== 'handed-out' || !isAbout(entry, site)) continue
    const right = await rightResult(scope, site, site.result, entry)
    if (right !== undefined) whole.set(site.result, right)
  }
  return messages.map((message) => whole.get(message) ?? message)
}
