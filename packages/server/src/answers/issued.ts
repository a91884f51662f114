import type { Message, ToolCall, ToolMessage } from '@countersign/core'
import { readArguments } from '../encoding/canonical.js'
import { type CallSite, isProviderExecuted, readCalls } from '../history/history.js'
import { readOwn } from '../history/metadata.js'
import type { LedgerEntry } from '../ledger/ledger.js'
import type { RunScope } from '../scope/scope.js'
import { approvalIdOf } from './answers.js'

/** The open records of this thread, matched with the calls of a history. */
export interface IssuedRecords {
  /** The open record that a call belongs to. */
  entryOf(site: CallSite): LedgerEntry | undefined
  /** The call of a record, even if its text was altered. */
  siteOf(entry: LedgerEntry): CallSite | undefined
  /** Any record, open or settled. Rejects if the ledger can't be reached. */
  lookup(approvalId: string): Promise<LedgerEntry | undefined>
}

/** A history without false results, and the open records of its thread. */
export interface ReadHistory {
  readonly messages: readonly Message[]
  readonly sites: readonly CallSite[]
  readonly issued: IssuedRecords
}

/**
 * Checks a client's history against the ledger. If the client has appended a result to a call whose approval is still open, that is
 * removed (one deployed client appends the answer's payload before it resumes).
 */
export async function readHistory(scope: RunScope, given: readonly Message[]): Promise<ReadHistory> {
  // Without calls there is nothing to match, and a ledger may have many open requests.
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
 * Removes such results once the approval is settled: the one appended by the client comes before our own, which reports the outcome of the
 * decision, and would be taken for it. Ids may repeat across turns, so a result is compared only with later ones before the next such call.
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

/** The ledger knows what the provider executes: a client that dropped the metadata must not turn such a call into one of ours. */
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
 * Whether the client was already sent the final result of a call that is open in the ledger: the call was interrupted, or the ledger
 * failed while the approval request was stored, so that the client never got the request.
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

/** The records of a thread for calls that carry their own token: found only by approval id. */
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

/** The calls of a history that share an id. If several match a record equally, the last one counts. */
interface SameId {
  readonly byApproval: ReadonlyMap<string, CallSite>
  /** The calls that name no approval: by tool and arguments, and the last of all. */
  readonly byWords: ReadonlyMap<string, CallSite>
  readonly last: CallSite | undefined
}

/**
 * Finds the call of a record: by the approval that the call names, else by the call's id: the one with the same arguments, or the last.
 * Each call is read once, however many records there are: the client decides how many calls share an id.
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

/** A key of a tool's name and its canonical arguments; different pairs have different keys. */
function wordsOf(toolName: string, canonical: string): string {
  return `${toolName.length}:${toolName}${canonical}`
}

/** Whether a record is for this call: the same tool and the same arguments. */
export function isAbout({ record }: LedgerEntry, { call }: CallSite): boolean {
  if (record.toolName !== call.function.name) return false
  const read = readArguments(call.function.arguments)
  return read.ok && read.canonical === record.arguments
}
