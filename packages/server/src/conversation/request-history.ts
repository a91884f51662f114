import {
  getCountersignMetadata,
  isRecord,
  type Message,
  setCountersignMetadata,
  type ToolCall,
  type ToolMessage,
} from '@countersign/core'
import { readArguments } from '../encoding/canonical.js'
import { randomId } from '../encoding/ids.js'
import { APPROVAL_TOOL } from '../gate/approval-tool.js'
import { readCalls, resultMessage, saysEdited, withoutOwn } from '../history/history.js'
import { failed } from '../outcome.js'
import type { Toolkit } from '../tools/toolkit.js'

/**
 * The stored conversation with what a request may add to it: new messages of the user, and results of calls that the client runs.
 * Everything else that the request claims is ignored. A result with an id that the conversation has already gets a new one. `known` are
 * the ids of messages on all branches: a user message of another one is not new.
 */
export function mergeHistory(
  stored: readonly Message[],
  given: readonly Message[],
  toolkit: Toolkit,
  known: { has(id: string): boolean },
  newId: () => string,
): Message[] {
  const ids = new Set<string>()
  const isKnown = (id: string) => known.has(id) || ids.has(id)
  const isClients = (name: string) => name === APPROVAL_TOOL || toolkit.get(name)?.location === 'client'
  const waiting = new Set(
    readCalls(stored).flatMap(({ call, result }) =>
      result === undefined && isClients(call.function.name) ? [call.id] : [],
    ),
  )
  const added = given.flatMap((message): Message[] => {
    if (message.role === 'user') {
      if (isKnown(message.id)) return []
      ids.add(message.id)
      // Only the server knows which there are.
      return [withoutOwn(message, 'versions')]
    }
    if (message.role !== 'tool' || !waiting.delete(message.toolCallId)) return []
    const id = isKnown(message.id) ? newId() : message.id
    ids.add(id)
    return [{ ...withoutEdits(message), id }]
  })
  return [...stored, ...added]
}

/**
 * A page's copy of a conversation, as far as it may be stored: messages of the user, texts of the assistant, and calls that have a result, or
 * may have run. Without tokens, approvals and decisions, and without requests that are open, so nothing of it can be answered or run.
 */
export function uploadedHistory(given: readonly Message[], newId: () => string): Message[] {
  const results = new Map(
    readCalls(given).flatMap(({ call, result }) => (result === undefined ? [] : [[call, result] as const])),
  )
  const kept = new Set<Message>(results.values())
  const ids = new Set<string>()
  return given.flatMap((message): Message[] => {
    if (ids.has(message.id)) return []
    ids.add(message.id)
    if (message.role === 'user') return [plain(message)]
    if (message.role === 'tool') return kept.has(message) ? [plain(message)] : []
    if (message.role !== 'assistant') return []
    const { toolCalls = [], ...rest } = plain(message)
    const ended = toolCalls.filter((call) => results.has(call)).map(plain)
    // Otherwise the model would make them again. Their ids are new: an answer to the page's call is not for these.
    const lost = toolCalls
      .filter((call) => !results.has(call) && mayHaveRun(call))
      .map((call) => ({ ...plain(call), id: randomId('call_') }))
    const calls = [...ended, ...lost]
    if (calls.length === 0) return rest.content ? [rest] : []
    return [
      { ...rest, toolCalls: calls },
      ...lost.map(({ id }) => resultMessage(newId(), id, unknownOutcome)),
    ]
  })
}

const unknownOutcome = failed(
  'execution_error',
  'The server that had this call is gone; it may or may not have run.',
  'interrupted',
)

/** Whether a call without a result may have run: it was complete, and needed no approval, or had one. */
function mayHaveRun(call: ToolCall): boolean {
  const { approval } = getCountersignMetadata(call.metadata)
  return (
    (approval === undefined || (isRecord(approval) && approval.approved === true)) &&
    readArguments(call.function.arguments).ok
  )
}

/** Without our own data, which only the server may write. */
function plain<T extends { readonly metadata?: Readonly<Record<string, unknown>> | undefined }>(item: T): T {
  if (Object.keys(getCountersignMetadata(item.metadata)).length === 0) return item
  const { metadata, ...rest } = item
  const left = setCountersignMetadata(metadata, {})
  return { ...rest, ...(left && { metadata: left }) } as T
}

/** Stored results of approved calls of which the request says that nobody approved them: another page of this user has. */
export function overruled(stored: readonly Message[], given: readonly Message[]): ToolMessage[] {
  const said = lastResults(given)
  return [...lastResults(stored).values()].filter(({ toolCallId, metadata }) => {
    const { outcome } = getCountersignMetadata(said.get(toolCallId)?.metadata)
    const { decided } = getCountersignMetadata(metadata)
    return outcome === 'denied' && isRecord(decided) && decided.decision === 'approve'
  })
}

function lastResults(messages: readonly Message[]): ReadonlyMap<string, ToolMessage> {
  return new Map(messages.flatMap((one) => (one.role === 'tool' ? [[one.toolCallId, one] as const] : [])))
}

/** A client's result without what it says of the user's edits: the ledger knows. */
function withoutEdits(result: ToolMessage): ToolMessage {
  return withoutOwn(saysEdited(result) ? withoutOwn(result, 'decided') : result, 'editedInput')
}

/** What the page of a request lacks of the stored conversation. */
export interface Gap {
  /** Whether the page must be sent the conversation: it lacks calls, results, or messages of another page. */
  readonly isBehind: boolean
  /** How many of the last messages are answers without calls that the page does not have: a request without a new message asks for them anew. */
  readonly unseen: number
  /** The page lacks calls before those. They have run, so their reply is shown and not asked for anew. */
  readonly lacksCalls: boolean
  /** The page lacks what was said last, or what came before that: another page has gone on. */
  readonly lacksTurn: boolean
}

const none: Gap = { isBehind: false, unseen: 0, lacksCalls: false, lacksTurn: false }

/**
 * Compares the stored conversation with that of a page, from the first message that both have. `last` is the last message that the page has
 * but did not send. Nothing can be said about a page that sent only new messages.
 */
export function gapOf(stored: readonly Message[], given: readonly Message[], last: string | undefined): Gap {
  const ids = new Set(given.map(({ id }) => id))
  const results = new Set(given.flatMap((message) => (message.role === 'tool' ? message.toolCallId : [])))
  const before = last === undefined ? -1 : stored.findLastIndex(({ id }) => id === last)
  const from = before < 0 ? stored.findIndex(({ id }) => ids.has(id)) : before
  if (from < 0) return none
  const rest = stored.slice(from + 1)
  const isLacking = (message: Message) =>
    /^(user|assistant|tool)$/.test(message.role) &&
    !ids.has(message.id) &&
    !(message.role === 'tool' && results.has(message.toolCallId))
  const lacking = rest.filter(isLacking)
  const spoken = rest.findLastIndex(({ role }) => role === 'user')
  const lacksTurn = rest.some((message, at) => at <= spoken && isLacking(message))
  const seen = rest.findLastIndex((message) => !(isLacking(message) && isText(message)))
  const unseen = lacksTurn ? 0 : rest.length - 1 - seen
  const lacksCalls = lacking.some((message) => message.role === 'assistant' && !isText(message))
  // Without `last`, this is not the version that the page shows.
  const isBehind = (last !== undefined && before < 0) || lacking.length > unseen
  return { isBehind, unseen, lacksCalls, lacksTurn }
}

function isText(message: Message): boolean {
  return message.role === 'assistant' && (message.toolCalls ?? []).length === 0
}

const MAX_LENGTH = 80

/** The beginning of what the user said first, on one line; undefined if that is no text. */
export function titleOf(messages: readonly Message[]): string | undefined {
  for (const { role, content } of messages) {
    if (role !== 'user') continue
    const parts = Array.isArray(content) ? content : [{ type: 'text', text: content }]
    const texts = parts.flatMap((part) =>
      'text' in part && typeof part.text === 'string' ? [part.text] : [],
    )
    const line = texts
      .join(' ')
      .slice(0, 10 * MAX_LENGTH)
      .replace(/\s+/g, ' ')
      .trim()
    const letters = Array.from(line)
    if (letters.length > 0)
      return letters.length > MAX_LENGTH
        ? `${letters
            .slice(0, MAX_LENGTH - 1)
            .join('')
            .trimEnd()}…`
        : line
  }
  return undefined
}
