import {
  type AssistantMessage,
  asString,
  getCountersignMetadata,
  isRecord,
  type Message,
  omitUndefined,
  setCountersignMetadata,
  type ToolCall,
  type ToolMessage,
} from '@countersign/core'
import { addTo, groupedBy } from '../encoding/groups.js'
import { failed, type ToolOutcome, toResultContent } from '../outcome.js'
import type { ProposedCall } from '../tools/call.js'
import { isReserved } from '../tools/toolkit.js'
import { ownMetadata } from './metadata.js'
import { orderWithout } from './order.js'
import { remembered } from './remembered.js'
import { turnwise } from './turns.js'

/** The reason for closing a call because the user moved on without answering. */
export const MOVED_ON = 'user moved on'

/** One occurrence of a tool call in a history, with its result. Ids may repeat across turns, so the occurrence itself is the key. */
export interface CallSite {
  readonly call: ToolCall
  readonly message: AssistantMessage
  /** The index of its message. */
  readonly index: number
  /** Whether a user message follows. */
  readonly superseded: boolean
  readonly result?: ToolMessage | undefined
  readonly resultIndex?: number
}

/**
 * Every tool call of a history, in order. A result belongs to the nearest earlier call with its id and without a result; a result
 * without such a call is ignored.
 */
export function readCalls(history: readonly Message[]): readonly CallSite[] {
  return callsOf(history, undefined)
}

const callsOf = turnwise<CallSite>((history, from, end) => {
  const sites: { -readonly [Key in keyof CallSite]: CallSite[Key] }[] = []
  const open = new Map<string, typeof sites>()
  // A part before another ends where a message of the user follows.
  const lastUser = end < history.length ? end : history.findLastIndex((message) => message.role === 'user')
  history.slice(from, end).forEach((message, at) => {
    const index = from + at
    if (message.role === 'tool') {
      const site = open.get(message.toolCallId)?.pop()
      if (site !== undefined) {
        site.result = message
        site.resultIndex = index
      }
    }
    if (message.role !== 'assistant') return
    for (const call of message.toolCalls ?? []) {
      const site = { call, message, index, superseded: index < lastUser }
      sites.push(site)
      addTo(open, call.id, site)
    }
  })
  return { items: sites, isClosed: sites.every(({ result }) => result !== undefined) }
})

/** The calls that need a result and have none. Calls that the provider runs itself need none. */
export function findUnansweredCalls(history: readonly Message[]): readonly CallSite[] {
  return readCalls(history).filter((site) => site.result === undefined && !isProviderExecuted(site.call))
}

/** Whether every call has its result. */
export function isReconciled(history: readonly Message[]): boolean {
  return findUnansweredCalls(history).length === 0
}

/** One cancelled result for each call without a result, in order. {@link withResults} inserts them. */
export function cancelAllPending(history: readonly Message[], reason?: string): readonly ToolMessage[] {
  return findUnansweredCalls(history).map(({ call, message }) =>
    resultMessage(`cancelled_${message.id}_${call.id}`, call.id, failed('cancelled', reason)),
  )
}

/** The history with each result inserted after the message with its call and the results already there. */
export function withResults(
  history: readonly Message[],
  results: readonly ToolMessage[],
): readonly Message[] {
  const waiting = groupedBy(results, ({ toolCallId }) => toolCallId)
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

export function resultMessage(
  id: string,
  toolCallId: string,
  outcome: ToolOutcome,
  own: Record<string, unknown> = {},
): ToolMessage {
  const { content, flag } = toResultContent(outcome)
  if (flag === undefined) return { id, role: 'tool', toolCallId, content, ...ownMetadata(own) }
  const error = 'reason' in outcome && outcome.reason !== undefined ? outcome.reason : outcome.kind
  return { id, role: 'tool', toolCallId, content, error, ...ownMetadata({ ...own, ...flag }) }
}

/** Whether a history contains a decision on a call that is not cancelled. The decision is not verified. */
export function isDecided(call: ToolCall): boolean {
  const { approval, state } = getCountersignMetadata(call.metadata)
  // A call that the client shows as cancelled is no longer approved.
  return state !== 'cancelled' && isRecord(approval) && approval.approved !== undefined
}

export function isProviderExecuted(call: ToolCall): boolean {
  return getCountersignMetadata(call.metadata).providerExecuted === true
}

/** A call of a history, to be read like one that the model has just made; `text` replaces its arguments. */
export function proposedCall({ call }: CallSite, text = call.function.arguments): ProposedCall {
  const { id, function: called } = call
  return { id, name: called.name, arguments: text, providerExecuted: isProviderExecuted(call) }
}

/** The id of the approval request that the model's provider made for a call of its own. */
export function providerApprovalOf(call: ToolCall): string | undefined {
  return isProviderExecuted(call)
    ? asString(getCountersignMetadata(call.metadata).providerApproval)
    : undefined
}

/** Whether the provider runs the call without requesting approval. */
export function isProvidersOwn(call: ToolCall): boolean {
  return isProviderExecuted(call) && providerApprovalOf(call) === undefined
}

/** The last call for which the model's provider made this approval request. */
export function callAskedAbout(history: readonly Message[], approvalId: string): string | undefined {
  const calls = history.flatMap((message) => (message.role === 'assistant' ? (message.toolCalls ?? []) : []))
  return calls.findLast((call) => providerApprovalOf(call) === approvalId)?.id
}

/**
 * The copy of a history for the model: each call followed by its one result, without approval data, tokens,
 * `client.*` calls and anything meant only for pages, and without messages that this leaves empty. Pure, linear and idempotent.
 * Calls without a result stay without; {@link assertReconciled} finds them. `also`: keeps activities.
 */
export function prepareMessagesForModel(history: readonly Message[], also?: 'activity'): readonly Message[] {
  return prepared(history, also)
}

const prepared = turnwise<Message, 'activity' | undefined>((history, from, end, also) => {
  const part = history.slice(from, end)
  const results = new Map<ToolCall, ToolMessage>()
  const sites = readCalls(part)
  for (const { call, result } of sites) if (result !== undefined) results.set(call, result)
  const prepared: Message[] = []
  for (const message of part) {
    if (message.role === 'tool') continue
    if (message.role === 'activity') {
      if (also === 'activity') prepared.push(message)
      continue
    }
    if (message.role !== 'assistant') {
      if (message.content.length > 0 || message.role === 'reasoning') prepared.push(message)
      continue
    }
    if (message.toolCalls === undefined) {
      if (message.content) prepared.push(message)
      continue
    }
    const { calls, copy } = modelCopy(message)
    if (copy === undefined) continue
    prepared.push(copy)
    for (const call of calls) {
      const result = results.get(call)
      if (result !== undefined) prepared.push(withoutDecision(result))
    }
  }
  return { items: prepared, isClosed: results.size === sites.length }
})

/** An assistant message as the model may see it, and its own calls that are left in it. */
const modelCopy = remembered((message: AssistantMessage) => {
  const calls = modelCalls(message)
  return { calls, copy: calls.length === 0 && !message.content ? undefined : withCalls(message, calls) }
})

/** The calls that the model may see. If two share an id, which no model produces, the last. */
function modelCalls({ toolCalls = [] }: AssistantMessage): readonly ToolCall[] {
  const byId = new Map(toolCalls.map((call) => [call.id, call]))
  return toolCalls.filter((call) => byId.get(call.id) === call && !isReserved(call.function.name))
}

function withCalls(message: AssistantMessage, calls: readonly ToolCall[]): AssistantMessage {
  if (message.toolCalls === undefined) return message
  const { toolCalls, ...rest } = message
  if (calls.length === 0) return rest
  const kept = { ...rest, toolCalls: calls.map(withoutApproval) }
  const own = getCountersignMetadata(message.metadata)
  if (own.order === undefined || calls.length === toolCalls.length) return kept
  const left = new Set<ToolCall | undefined>(calls)
  return withMetadata(kept, { ...own, order: orderWithout(own.order, (nth) => !left.has(toolCalls[nth])) })
}

/** A call as the model may see it; the same object if nothing had to be removed. */
export function withoutApproval(call: ToolCall): ToolCall {
  // `request` and `response`: what a prompt's parts contained besides the approval request and its answer.
  const { token, approval, request, response, decided, ...own } = getCountersignMetadata(call.metadata)
  const artefacts = [token, approval, request, response, decided]
  if (artefacts.every((artefact) => artefact === undefined)) return call
  return withMetadata(call, { ...own, ...editsOf(decided) })
}

/** Of a decision a model learns only what the user changed the arguments to. */
function editsOf(decided: unknown): { readonly editedInput?: unknown } {
  return isRecord(decided) && decided.edited === true ? { editedInput: decided.input } : {}
}

/** A result as the model may see it; the same object if nothing had to be removed. */
const withoutDecision = remembered((result: ToolMessage): ToolMessage => {
  const { decided, ...own } = getCountersignMetadata(result.metadata)
  return decided === undefined ? result : withMetadata(result, { ...own, ...editsOf(decided) })
})

/**
 * A client's history without what only this server says to the model: what the user changed the arguments of a call to. The decision beside a
 * result says whether they were changed, not one that comes with the call.
 */
export function withoutClaimedEdits(history: readonly Message[]): readonly Message[] {
  const unedited = new Set<ToolCall>()
  for (const { call, result } of readCalls(history))
    if (result && isIn(result, 'decided') && !saysEdited(result) && saysEdited(call)) unedited.add(call)
  const trueCall = (call: ToolCall) =>
    withoutOwn(unedited.has(call) ? withoutOwn(call, 'decided') : call, 'editedInput')
  return history.map((message) => {
    if (message.role === 'tool') return withoutOwn(message, 'editedInput')
    const { toolCalls } = message.role === 'assistant' ? message : {}
    const isTrue = toolCalls?.every((call) => call === trueCall(call)) ?? true
    return isTrue ? message : ({ ...message, toolCalls: toolCalls?.map(trueCall) } as AssistantMessage)
  })
}

type WithMetadata = Pick<ToolCall, 'metadata'>

function isIn({ metadata }: WithMetadata, member: string): boolean {
  return metadata !== undefined && getCountersignMetadata(metadata)[member] !== undefined
}

export function saysEdited({ metadata }: WithMetadata): boolean {
  const { decided } = getCountersignMetadata(metadata)
  return isRecord(decided) && decided.edited === true
}

/** The same without a member of its `countersign` metadata. */
export function withoutOwn<T extends WithMetadata>(of: T, member: string): T {
  if (!isIn(of, member)) return of
  const own = getCountersignMetadata(of.metadata)
  return withMetadata(of, omitUndefined({ ...own, [member]: undefined })) as T
}

/** The same with other `countersign` metadata; without metadata if nothing is left. */
function withMetadata<T extends { readonly metadata?: Readonly<Record<string, unknown>> | undefined }>(
  of: T,
  own: Record<string, unknown>,
) {
  return omitUndefined({ ...of, metadata: setCountersignMetadata(of.metadata, own) })
}
