import type { Message, ToolCall, ToolMessage } from '@countersign/core'
import { readArguments } from '../encoding/canonical.js'
import { type CallSite, isProviderExecuted, readCalls } from '../history/history.js'
import { readOwn } from '../history/metadata.js'
import type { LedgerEntry } from '../ledger/ledger.js'
import type { RunScope } from '../scope/scope.js'
import { approvalIdOf } from './answers.js'

/** What the ledger still has open in this thread, against the calls of a history. */
export interface IssuedRecords {
  /** The open record that a call belongs to. */
  entryOf(site: CallSite): LedgerEntry | undefined
  /** The call that a record is about, also when its text was altered. */
  siteOf(entry: LedgerEntry): CallSite | undefined
  /** Any record, open or settled. Rejects when the ledger cannot be reached. */
  lookup(approvalId: string): Promise<LedgerEntry | undefined>
}

/** A history whose results are results, and the open records of its thread. */
export interface ReadHistory {
  readonly messages: readonly Message[]
  readonly sites: readonly CallSite[]
  readonly issued: IssuedRecords
}

/**
 * Reads a client's history against the ledger. What a client appended as the result of a call whose approval is still open is not
 * a result (one deployed client appends the answer's payload before it resumes), so it is taken out.
 */
export async function readHistory(scope: RunScope, given: readonly Message[]): Promise<ReadHistory> {
  // without calls there is nothing to match, and a ledger may hold many open questions
  const hasCalls = given.some((message) => message.role === 'assistant' && message.toolCalls?.length)
  const open = hasCalls ? await readOpen(scope) : []
  const history = withProviderCalls(open, withoutClaims(given))
  const before = readCalls(history)
  const siteOf = siteFinder(before)
  const claimed = new Set<Message>()
  for (const entry of open) {
    const site = siteOf(entry)
    if (site?.result === undefined || !isAbout(entry, site)) continue
    if (!wasTold(entry, site.result)) claimed.add(site.result)
  }
  const messages = claimed.size === 0 ? history : history.filter((message) => !claimed.has(message))
  const sites = claimed.size === 0 ? before : readCalls(messages)
  return { messages, sites, issued: indexRecords(scope, open, sites) }
}

/**
 * The same once the approval is settled: what the client appended stands before our own result, which says what came of the decision,
 * and would be taken for the first one. Ids may repeat over turns: a claim goes with the result that follows before the next such call.
 */
function withoutClaims(history: readonly Message[]): readonly Message[] {
  const settled = new Set<string>()
  const claims = new Set<Message>()
  for (const message of history.toReversed()) {
    if (message.role === 'assistant') for (const { id } of message.toolCalls ?? []) settled.delete(id)
    if (message.role !== 'tool') continue
    const { decided, outcome } = readOwn(message.metadata)
    if (decided !== undefined || outcome !== undefined) settled.add(message.toolCallId)
    else if (settled.has(message.toolCallId)) claims.add(message)
  }
  return claims.size === 0 ? history : history.filter((message) => !claims.has(message))
}

/** What the provider runs is known by the ledger: a client that kept no metadata must not make one of our calls of it. */
function withProviderCalls(open: readonly LedgerEntry[], history: readonly Message[]): readonly Message[] {
  const entries = open.filter(({ record }) => record.providerExecuted)
  if (entries.length === 0) return history
  const siteOf = siteFinder(readCalls(history))
  const marked = new Map<ToolCall, ToolCall>()
  for (const entry of entries) {
    const call = siteOf(entry)?.call
    if (call === undefined || isProviderExecuted(call)) continue
    const own = {
      ...readOwn(call.metadata),
      providerExecuted: true,
      providerApproval: entry.record.approvalId,
    }
    marked.set(call, { ...call, metadata: { ...call.metadata, countersign: own } })
  }
  const mark = (call: ToolCall) => marked.get(call) ?? call
  return history.map((message) =>
    message.role === 'assistant' && message.toolCalls?.some((call) => marked.has(call))
      ? { ...message, toolCalls: message.toolCalls.map(mark) }
      : message,
  )
}

/**
 * Whether a client was told the end of a call that the ledger has open, and nothing more will come of it: the call was interrupted, or the ledger
 * failed while the approval request was stored, so that the client never got it.
 */
function wasTold({ state }: LedgerEntry, { metadata }: ToolMessage): boolean {
  const { outcome, code } = readOwn(metadata)
  if (outcome !== 'error') return false
  return state.phase === 'interrupted'
    ? code === 'interrupted'
    : state.phase === 'issued' && code === 'ledger-unavailable'
}

async function readOpen({ settings, owner, threadId }: RunScope): Promise<readonly LedgerEntry[]> {
  try {
    return await settings.approvals.ledger.unsettled(owner, threadId)
  } catch (error) {
    settings.warn('The ledger could not be read.', error)
    return []
  }
}

/** The records of a thread for calls that carry their own token: found by approval alone. */
export function recordsOf(scope: RunScope): IssuedRecords {
  return indexRecords(scope, [], [])
}

function indexRecords(
  scope: RunScope,
  open: readonly LedgerEntry[],
  sites: readonly CallSite[],
): IssuedRecords {
  const { settings, owner, threadId } = scope
  const siteOf = siteFinder(sites)
  const bySite = new Map<CallSite, LedgerEntry>()
  for (const entry of open) {
    const site = siteOf(entry)
    if (site !== undefined) bySite.set(site, entry)
  }
  return {
    entryOf: (site) => bySite.get(site),
    siteOf,
    lookup: (approvalId) => settings.approvals.ledger.lookup({ owner, threadId, approvalId }),
  }
}

/** The calls of a history that share an id; of several that fit a record alike, the last. */
interface SameId {
  readonly byApproval: ReadonlyMap<string, CallSite>
  /** Of those that name no approval: by tool and arguments, and the last of all. */
  readonly byWords: ReadonlyMap<string, CallSite>
  readonly last: CallSite | undefined
}

/**
 * Finds the call of a record: by the approval that the call names, else by the call's id: the one whose arguments fit, or the last.
 * Each call is read once, however many records there are: a client decides how many calls have one id.
 */
function siteFinder(sites: readonly CallSite[]): (entry: LedgerEntry) => CallSite | undefined {
  const byId = new Map<string, CallSite[]>()
  for (const site of sites) {
    const same = byId.get(site.call.id)
    if (same === undefined) byId.set(site.call.id, [site])
    else same.push(site)
  }
  const read = new Map<string, SameId>()
  return ({ record }) => {
    const { approvalId, toolCallId, toolName } = record
    const same = byId.get(toolCallId)
    if (same === undefined) return undefined
    const known = read.get(toolCallId) ?? readSameId(same)
    read.set(toolCallId, known)
    return (
      known.byApproval.get(approvalId) ?? known.byWords.get(wordsOf(toolName, record.arguments)) ?? known.last
    )
  }
}

function readSameId(sites: readonly CallSite[]): SameId {
  const byApproval = new Map<string, CallSite>()
  const byWords = new Map<string, CallSite>()
  let last: CallSite | undefined
  for (const site of sites) {
    const approvalId = approvalIdOf(site)
    if (approvalId !== undefined) {
      byApproval.set(approvalId, site)
      continue
    }
    const { name, arguments: text } = site.call.function
    const read = readArguments(text)
    if (read.ok) byWords.set(wordsOf(name, read.canonical), site)
    last = site
  }
  return { byApproval, byWords, last }
}

/** Of a tool's name and canonical arguments: only one pair of them has it. */
function wordsOf(toolName: string, canonical: string): string {
  return `${toolName.length}:${toolName}${canonical}`
}

/** Whether a record is about this call: the same tool, the same arguments. */
export function isAbout({ record }: LedgerEntry, { call }: CallSite): boolean {
  if (record.toolName !== call.function.name) return false
  const read = readArguments(call.function.arguments)
  return read.ok && read.canonical === record.arguments
}
