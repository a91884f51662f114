import {
  getCountersignMetadata,
  isTerminal,
  type MessagePart,
  omitUndefined,
  type ThreadRecord,
  type ToolCallPart,
  type UIMessage,
} from '@countersign/core'
import { fromAGUIMessages } from '@countersign/core/ag-ui'
import type { LoadedThread } from './thread-route.js'

/** A conversation as its server has it. */
export interface ServerThread {
  readonly messages: readonly UIMessage[]
  /** How many of them were there before the run that is open, or that broke off there. */
  readonly before: number
  /** `open`: it is rejoined, and `messages` are those before it. `cut`: its process has probably died. */
  readonly run: 'none' | 'open' | 'cut'
}

/** Reads what was loaded. `isRejoined`: its open run is; `stoppedAt`: the last message when the user stopped a run in this page. */
export function readServerThread(
  { messages, run }: Pick<LoadedThread, 'messages' | 'run'>,
  isRejoined: boolean,
  stoppedAt: string | undefined,
): ServerThread {
  // An incomplete reply is marked. A user message that is last got no reply, unless it is marked as one to which the model said nothing.
  const last = messages.at(-1)
  const { cut } = getCountersignMetadata(last?.metadata)
  const hasMark = last?.role === 'user' ? cut !== false : cut === true
  const isCut = run === undefined && hasMark && last?.id !== stoppedAt
  // A run that ended after it has stored nothing.
  const isWhole = last?.role === 'assistant' && !hasMark && !last.toolCalls?.length
  const ofRun = new Set(isCut && last?.role === 'assistant' ? [last.id] : run?.messageIds)
  const before = fromAGUIMessages(messages.filter(({ id }) => !ofRun.has(id)))
  return {
    messages: isRejoined || ofRun.size === 0 ? before : fromAGUIMessages(messages),
    before: before.length,
    run: isRejoined ? 'open' : (run?.lapsed && !isWhole) || isCut ? 'cut' : 'none',
  }
}

/** What only the page has: what its server was not sent, or has not confirmed. A record of that alone. */
export function unsentOf(record: ThreadRecord): ThreadRecord {
  const outputs = new Set(record.unsentOutputs)
  const isUnsent = (part: MessagePart) =>
    part.type === 'tool-result'
      ? outputs.has(part.toolCallId)
      : part.type === 'tool-call' &&
        (outputs.has(part.id) || part.state === 'approval-responded' || part.state === 'executing')
  const lastReply = record.messages.findLastIndex(({ role }) => role === 'assistant')
  const messages = record.messages.flatMap((message, at) => {
    if (message.role === 'user') return at > lastReply ? [message] : []
    const parts = message.parts.filter(isUnsent)
    return parts.length > 0 ? [{ ...message, parts }] : []
  })
  return { ...record, messages }
}

/** Whether such a record has nothing that a later page needs. */
export function isEmpty({ messages, queue, interrupts, ready, openRun }: ThreadRecord): boolean {
  return messages.length + queue.length + interrupts.length + ready.length === 0 && openRun === undefined
}

export const nothing: ThreadRecord = {
  version: 1,
  messages: [],
  unsentOutputs: [],
  ready: [],
  interrupts: [],
  queue: [],
}

/** What is in the first record and not in the second. */
export function without(record: ThreadRecord, known: ThreadRecord): ThreadRecord {
  const names = new Set(
    known.messages.flatMap((message) => message.parts.map((part) => nameOf(message, part))),
  )
  const messages = record.messages.flatMap((message) => {
    const parts = message.parts.filter((part) => !names.has(nameOf(message, part)))
    return parts.length > 0 ? [{ ...message, parts }] : []
  })
  return omitUndefined({
    ...record,
    messages,
    unsentOutputs: record.unsentOutputs.filter((id) => !known.unsentOutputs.includes(id)),
    ready: notIn(known.ready, record.ready),
    interrupts: record.interrupts.filter(
      ({ interrupt }) => !known.interrupts.some((other) => other.interrupt.id === interrupt.id),
    ),
    queue: notIn(known.queue, record.queue),
    openRun: record.openRun === known.openRun ? undefined : record.openRun,
  })
}

/** What is in both records. */
export function within(record: ThreadRecord, known: ThreadRecord): ThreadRecord {
  return without(record, without(record, known))
}

/** Both, of which the second is newer. */
export function together(before: ThreadRecord, after: ThreadRecord): ThreadRecord {
  const rest = without(before, after)
  const parts = new Map(rest.messages.map((message) => [message.id, message.parts]))
  const messages = after.messages.map((message) => ({
    ...message,
    parts: [...(parts.get(message.id) ?? []), ...message.parts],
  }))
  return omitUndefined({
    ...after,
    messages: [...notIn(messages, rest.messages), ...messages],
    unsentOutputs: [...rest.unsentOutputs, ...after.unsentOutputs],
    ready: [...rest.ready, ...after.ready],
    interrupts: [...rest.interrupts, ...after.interrupts],
    queue: [...rest.queue, ...after.queue],
    isHeld: (after.queue.length > 0 ? after.isHeld : undefined) ?? rest.isHeld,
    openRun: after.openRun ?? rest.openRun,
    // Without it, messages that failed would be sent by themselves.
    error: after.error ?? (rest.messages.length > 0 ? rest.error : undefined),
  })
}

/** A call and its result have names of their own; the parts of what a user wrote have that of the message. */
function nameOf({ id }: UIMessage, part: MessagePart): string {
  if (part.type === 'tool-call') return `call ${part.id}`
  return part.type === 'tool-result' ? `result ${part.toolCallId}` : `message ${id}`
}

function notIn<T extends { readonly id: string }>(
  known: readonly { readonly id: string }[],
  all: readonly T[],
): T[] {
  const ids = new Set(known.map(({ id }) => id))
  return all.filter(({ id }) => !ids.has(id))
}

/** Whether it has a message that could not be sent. Only `retry`, or the next message, sends it: never something that happens elsewhere. */
export function hasUnsentMessage(unsent: ThreadRecord, known: readonly { readonly id: string }[]): boolean {
  return unsent.error !== undefined && notIn(known, unsent.messages).some(({ role }) => role === 'user')
}

/** The conversation of the server, with what the page has not sent. What the server has got further with counts. */
export function withUnsent(
  thread: ServerThread,
  unsent: ThreadRecord | undefined,
  warn: (message: string) => void,
): ThreadRecord {
  const calls = new Map(unsent?.messages.flatMap(({ parts }) => parts.map((part) => [idOf(part), part])))
  const results = unsent?.messages.flatMap(({ parts }) => parts.filter((part) => part.type === 'tool-result'))
  const used = new Set<string>()
  const merge = (part: MessagePart): readonly MessagePart[] => {
    const own = part.type === 'tool-call' ? calls.get(part.id) : undefined
    if (part.type !== 'tool-call' || own?.type !== 'tool-call' || !isFurther(own, part)) return [part]
    if (isOther(own, part)) {
      warn(
        `The answer to the request "${own.approval?.id}" was not sent: the server has closed it and asks anew.`,
      )
      return [part]
    }
    used.add(part.id)
    return [own, ...(results?.filter(({ toolCallId }) => toolCallId === part.id) ?? [])]
  }
  const messages = thread.messages.map((message) =>
    message.parts.some((part) => calls.has(idOf(part)))
      ? { ...message, parts: message.parts.flatMap(merge) }
      : message,
  )
  const known = new Set(messages.map(({ id }) => id))
  const unknown = unsent?.messages.filter(({ id, role }) => role === 'user' && !known.has(id)) ?? []
  // The reply of the open run comes before what was said later.
  const failed = thread.run === 'open' ? [] : unknown
  const later = thread.run === 'open' ? unknown : []
  const waiting = later.map((message) => ({ id: message.id, message, visible: [] }))
  const last = thread.messages[thread.before - 1]
  const failure = unsent?.error
  return {
    version: 1,
    messages: [...messages, ...failed],
    unsentOutputs: unsent?.unsentOutputs.filter((id) => used.has(id)) ?? [],
    ready: unsent?.ready ?? [],
    interrupts: unsent?.interrupts ?? [],
    queue: [...waiting, ...(unsent?.queue.filter(({ id }) => !known.has(id)) ?? [])],
    // Calls of client tools are left to whoever shows the conversation.
    run: { runId: '', reason: undefined, outcome: 'success', pendingToolCallIds: undefined },
    ...(failed.length > 0 && {
      from: [messages.length + failed.length, 1],
      ...(failure && { error: failure }),
    }),
    ...(thread.run === 'cut' && { from: [thread.before, last?.parts.length ?? 0] }),
    ...(unsent?.state !== undefined && { state: unsent.state }),
  }
}

function idOf(part: MessagePart): string {
  return part.type === 'tool-call' ? part.id : ''
}

function isFurther(own: ToolCallPart, part: ToolCallPart): boolean {
  return !isTerminal(part.state) && part.state !== own.state
}

/** Whether the server asks about the call again: an answer to its earlier request must not count for this one. */
function isOther(own: ToolCallPart, { approval }: ToolCallPart): boolean {
  return approval !== undefined && approval.id !== own.approval?.id
}
