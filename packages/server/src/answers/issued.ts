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
  const open = await readOpen(scope)
  const history = withProviderCalls(open, withoutClaims(given))
  const before = readCalls(history)
  const claimed = new Set<Message>()
  for (const entry of open) {
    const site = findSite(entry, before)
    if (site?.result === undefined || !isAbout(entry, site)) continue
    if (!saysInterrupted(entry, site.result)) claimed.add(site.result)
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
  const sites = readCalls(history)
  const marked = new Map<ToolCall, ToolCall>()
  for (const entry of entries) {
    const call = findSite(entry, sites)?.call
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

/** An interrupted call stays open in the ledger, but what the client was told of it is all there is to tell. */
function saysInterrupted({ state }: LedgerEntry, { metadata }: ToolMessage): boolean {
  const { outcome, code } = readOwn(metadata)
  return state.phase === 'interrupted' && outcome === 'error' && code === 'interrupted'
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
  const bySite = new Map<CallSite, LedgerEntry>()
  for (const entry of open) {
    const site = findSite(entry, sites)
    if (site !== undefined) bySite.set(site, entry)
  }
  return {
    entryOf: (site) => bySite.get(site),
    siteOf: (entry) => findSite(entry, sites),
    lookup: (approvalId) => settings.approvals.ledger.lookup({ owner, threadId, approvalId }),
  }
}

/** By the approval that the call names, else by the call's id: the one whose arguments fit, or the last. */
function findSite(entry: LedgerEntry, sites: readonly CallSite[]): CallSite | undefined {
  const { approvalId, toolCallId } = entry.record
  const same = sites.filter((site) => site.call.id === toolCallId)
  return (
    same.findLast((site) => approvalIdOf(site) === approvalId) ??
    same.findLast((site) => approvalIdOf(site) === undefined && isAbout(entry, site)) ??
    same.findLast((site) => approvalIdOf(site) === undefined)
  )
}

/** Whether a record is about this call: the same tool, the same arguments. */
export function isAbout({ record }: LedgerEntry, { call }: CallSite): boolean {
  if (record.toolName !== call.function.name) return false
  const read = readArguments(call.function.arguments)
  return read.ok && read.canonical === record.arguments
}
