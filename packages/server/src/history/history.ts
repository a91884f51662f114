import { isRecord, type Message, type ToolCall, type ToolMessage } from '@countersign/core'
import { failed, type ToolOutcome, toResultContent } from '../outcome.js'
import { isReserved } from '../tools/toolkit.js'
import { asString, type OwnMetadata, ownMetadata, readOwn, withOwn } from './metadata.js'
import { orderWithout } from './order.js'

/** The reason of a call that is closed because the person went on without answering it. */
export const MOVED_ON = 'user moved on'

type AssistantMessage = Extract<Message, { role: 'assistant' }>

/** One occurrence of a tool call in a history, and what answers it. Ids may repeat over turns: an occurrence is its own key. */
export interface CallSite {
  readonly call: ToolCall
  readonly message: AssistantMessage
  /** Position of its message. */
  readonly index: number
  /** Whether a user message follows. */
  readonly superseded: boolean
  readonly result?: ToolMessage | undefined
}

/**
 * Every tool call of a history, in order. A result answers the nearest earlier unanswered call with its id; one before its call,
 * or without any, answers nothing.
 */
export function readCalls(history: readonly Message[]): readonly CallSite[] {
  const sites: { -readonly [Key in keyof CallSite]: CallSite[Key] }[] = []
  const open = new Map<string, typeof sites>()
  const lastUser = history.findLastIndex((message) => message.role === 'user')
  history.forEach((message, index) => {
    if (message.role === 'tool') {
      const site = open.get(message.toolCallId)?.pop()
      if (site !== undefined) site.result = message
    }
    if (message.role !== 'assistant') return
    for (const call of message.toolCalls ?? []) {
      const site = { call, message, index, superseded: index < lastUser }
      sites.push(site)
      const same = open.get(call.id)
      if (same === undefined) open.set(call.id, [site])
      else same.push(site)
    }
  })
  return sites
}

/** The calls that have no result and need one: those the provider runs itself are its own affair. */
export function findUnansweredCalls(history: readonly Message[]): readonly CallSite[] {
  return readCalls(history).filter((site) => site.result === undefined && !isProviderExecuted(site.call))
}

/** Whether every call has its result. */
export function isReconciled(history: readonly Message[]): boolean {
  return findUnansweredCalls(history).length === 0
}

/** One cancelled result for each call without a result, in order. {@link withResults} places them. */
export function cancelAllPending(history: readonly Message[], reason?: string): readonly ToolMessage[] {
  return findUnansweredCalls(history).map(({ call, message }) =>
    resultMessage(`cancelled_${message.id}_${call.id}`, call.id, failed('cancelled', reason)),
  )
}

/** The history with each result right after the message that holds its call and the results already there. */
export function withResults(
  history: readonly Message[],
  results: readonly ToolMessage[],
): readonly Message[] {
  const waiting = new Map<string, ToolMessage[]>()
  for (const result of results) {
    const same = waiting.get(result.toolCallId)
    if (same === undefined) waiting.set(result.toolCallId, [result])
    else same.push(result)
  }
  const byCall = new Map<ToolCall, ToolMessage>()
  for (const { call } of findUnansweredCalls(history)) {
    const result = waiting.get(call.id)?.shift()
    if (result !== undefined) byCall.set(call, result)
  }
  return placeResults(history, byCall)
}

/** {@link withResults} for exactly these occurrences of calls. */
export function placeResults(
  history: readonly Message[],
  byCall: ReadonlyMap<ToolCall, ToolMessage>,
): readonly Message[] {
  if (byCall.size === 0) return history
  const after = new Map<Message, readonly ToolMessage[]>()
  for (const message of history) {
    if (message.role !== 'assistant' || message.toolCalls === undefined) continue
    const results = message.toolCalls.map((call) => byCall.get(call)).filter((result) => result !== undefined)
    if (results.length > 0) after.set(message, results)
  }
  return insertAfterResults(history, after)
}

function insertAfterResults(
  history: readonly Message[],
  after: ReadonlyMap<Message, readonly Message[]>,
): readonly Message[] {
  const placed: Message[] = []
  let held: readonly Message[] = []
  for (const message of history) {
    if (message.role !== 'tool') {
      placed.push(...held)
      held = after.get(message) ?? []
    }
    placed.push(message)
  }
  placed.push(...held)
  return placed
}

/** An outcome as the tool message that answers a call. */
export function resultMessage(
  id: string,
  toolCallId: string,
  outcome: ToolOutcome,
  own: OwnMetadata = {},
): ToolMessage {
  const { content, flag } = toResultContent(outcome)
  if (flag === undefined) return { id, role: 'tool', toolCallId, content, ...ownMetadata(own) }
  const error = 'reason' in outcome && outcome.reason !== undefined ? outcome.reason : outcome.kind
  return { id, role: 'tool', toolCallId, content, error, ...ownMetadata({ ...own, ...flag }) }
}

/** Whether the history keeps a person's decision on a call that has not been taken back. Nothing about it is checked. */
export function isDecided(call: ToolCall): boolean {
  const { approval, state } = readOwn(call.metadata)
  // what the client shows as cancelled is no yes any more
  return state !== 'cancelled' && isRecord(approval) && approval.approved !== undefined
}

/** Whether the model's provider runs a call itself. */
export function isProviderExecuted(call: ToolCall): boolean {
  return readOwn(call.metadata).providerExecuted === true
}

/** The id under which the model's provider asked before it runs a call of its own. */
export function providerApprovalOf(call: ToolCall): string | undefined {
  return isProviderExecuted(call) ? asString(readOwn(call.metadata).providerApproval) : undefined
}

/** The last call that the model's provider asked about under an id of its own. */
export function callAskedAbout(history: readonly Message[], approvalId: string): string | undefined {
  const calls = history.flatMap((message) => (message.role === 'assistant' ? (message.toolCalls ?? []) : []))
  return calls.findLast((call) => providerApprovalOf(call) === approvalId)?.id
}

/**
 * The copy of a history that a model may see: each call followed by its one result, no approval artefacts, no tokens, no
 * `client.*` calls, nothing that shows only on a page, no message that this leaves empty. Pure, linear, and doing it twice changes
 * nothing more. Calls without a result stay without; {@link assertReconciled} finds them.
 */
export function prepareMessagesForModel(history: readonly Message[]): readonly Message[] {
  const results = new Map<ToolCall, ToolMessage>()
  for (const { call, result } of readCalls(history)) if (result !== undefined) results.set(call, result)
  const prepared: Message[] = []
  for (const message of history) {
    if (message.role === 'tool' || message.role === 'activity') continue
    if (message.role !== 'assistant') {
      if (message.content.length > 0 || message.role === 'reasoning') prepared.push(message)
      continue
    }
    const calls = modelCalls(message)
    if (calls.length === 0 && !message.content) continue
    prepared.push(withCalls(message, calls))
    for (const call of calls) {
      const result = results.get(call)
      if (result !== undefined) prepared.push(withoutDecision(result))
    }
  }
  return prepared
}

/** The calls that a model may see; of two with one id, which no model makes, the last. */
function modelCalls({ toolCalls = [] }: AssistantMessage): readonly ToolCall[] {
  const byId = new Map(toolCalls.map((call) => [call.id, call]))
  return toolCalls.filter((call) => byId.get(call.id) === call && !isReserved(call.function.name))
}

function withCalls(message: AssistantMessage, calls: readonly ToolCall[]): AssistantMessage {
  if (message.toolCalls === undefined) return message
  const { toolCalls, ...rest } = message
  if (calls.length === 0) return rest
  const kept = { ...rest, toolCalls: calls.map(withoutApproval) }
  const own = readOwn(message.metadata)
  if (own.order === undefined || calls.length === toolCalls.length) return kept
  const left = new Set<ToolCall | undefined>(calls)
  return withOwn(kept, { ...own, order: orderWithout(own.order, (nth) => !left.has(toolCalls[nth])) })
}

/** A call as a model may see it; the same object where nothing had to go. */
export function withoutApproval(call: ToolCall): ToolCall {
  // `request` and `response`: what a prompt's parts carried beside the question and its answer
  const { token, approval, request, response, decided, ...own } = readOwn(call.metadata)
  const artefacts = [token, approval, request, response, decided]
  return artefacts.every((artefact) => artefact === undefined) ? call : withOwn(call, own)
}

/** A result as a model may see it; the same object where nothing had to go. */
function withoutDecision(result: ToolMessage): ToolMessage {
  const { decided, ...own } = readOwn(result.metadata)
  return decided === undefined ? result : withOwn(result, own)
}
