import type {
  DataPart,
  FilePart,
  MessagePart,
  ReasoningPart,
  SourcePart,
  TextPart,
  ToolCallPart,
  ToolResultPart,
  UIMessage,
} from '../messages.js'
import type { ContentPart, Message, ReasoningMessage, ToolCall, ToolMessage } from '../protocol/events.js'
import {
  asString,
  getCountersignMetadata,
  isRecord,
  omitUndefined,
  oneOf,
  parseJson,
  readCallMetadata,
  setCountersignMetadata,
} from '../value.js'
import { readRefusal } from './approval-refusal.js'
import { decisionOf, readResult } from './call-result.js'
import { keepPreservedType, type PreservedFields, preservedOf, withPreserved } from './preserved.js'
import { readApproval, readDelivery } from './read-approval.js'
import { finalOutput } from './structured-text.js'
import { withSubagent } from './subagents.js'

/**
 * Converts AG-UI messages to UI messages: reasoning and tool results become parts of the assistant message they belong to. AG-UI
 * 1.0 does not keep the order of text and calls, so it is taken from `metadata.countersign.order` if a Countersign peer wrote it.
 */
export function foldMessages(messages: readonly Message[]): UIMessage[] {
  const folded: Draft[] = []
  const open: OpenCalls = new Map()
  let reasoning: ReasoningMessage[] = []
  const keepReasoning = (count = reasoning.length) => {
    for (const thought of reasoning.splice(0, count)) folded.push(foldThought(thought))
  }
  for (const message of messages) {
    if (message.role === 'reasoning') reasoning.push(message)
    else if (message.role === 'tool') foldResult(message, open)
    else if (message.role === 'assistant') {
      const { id, role, content = '', toolCalls = [] } = message
      // An assistant message includes the reasoning right before it by the same agent; other reasoning stays a separate message.
      keepReasoning(reasoning.findLastIndex((one) => one.subagentRunId !== message.subagentRunId) + 1)
      const parts = { r: reasoning.map(foldReasoning), c: toolCalls.map(foldCall) }
      const made = draft(omitUndefined({ id, role, metadata: withOrigin(message) }), parts, content)
      parts.c.forEach((part, index) => {
        const same = open.get(part.id) ?? []
        same.push({ draft: made, index })
        open.set(part.id, same)
      })
      folded.push(made)
      reasoning = []
    } else {
      keepReasoning()
      folded.push(foldPlain(message))
    }
  }
  keepReasoning()
  return folded.map(finish)
}

/** The calls without a result, by id. */
type OpenCalls = Map<string, { readonly draft: Draft; readonly index: number }[]>

/** The parts of a message other than its text, by their code in `metadata.countersign.order`. */
interface Parts {
  /** Reasoning. */
  readonly r: readonly ReasoningPart[]
  /** Content parts of a user message, or an activity. */
  readonly p: readonly MessagePart[]
  /** Calls. */
  readonly c: ToolCallPart[]
  /** Results of the calls. */
  readonly o: ToolResultPart[]
}

/** A message while its parts are collected. */
interface Draft {
  readonly message: Pick<Message, 'id' | 'metadata'> & Pick<UIMessage, 'role'>
  readonly content: string
  readonly parts: Parts
}

function draft(message: Draft['message'], parts: Partial<Parts>, content = ''): Draft {
  return { message, content, parts: { r: [], p: [], c: [], o: [], ...parts } }
}

/** Adds the AG-UI fields of an assistant message to its metadata: opaque provider content, the subagent and the name. */
function withOrigin(message: Extract<Message, { role: 'assistant' }>): Record<string, unknown> | undefined {
  return withSpeaker(
    withSubagent(message.metadata, message),
    omitUndefined({ ...preservedOf(message), name: message.name }),
  )
}

/** AG-UI fields that a UI message does not have. */
interface Speaker extends PreservedFields {
  readonly name?: string
  readonly role?: 'developer'
  /** The content came as a list, though it holds only one text. */
  readonly list?: true
}

/** Stores these fields in metadata, so that they are sent back unchanged. */
function withSpeaker(
  metadata: Readonly<Record<string, unknown>> | undefined,
  speaker: Speaker,
): Record<string, unknown> | undefined {
  return setCountersignMetadata(metadata, { ...getCountersignMetadata(metadata), ...speaker })
}

function foldPlain(message: Exclude<Message, { role: 'assistant' | 'tool' | 'reasoning' }>): Draft {
  const as = (role: UIMessage['role'], speaker: Speaker = {}) =>
    omitUndefined({
      id: message.id,
      role,
      metadata: withSpeaker(withSubagent(message.metadata, message), speaker),
    })
  switch (message.role) {
    case 'activity': {
      const { id, activityType: name } = message
      const { data, metadata } = readActivity(message)
      const kept = withSubagent(metadata, message)
      return draft(omitUndefined({ id, role: 'assistant' as const, metadata: kept }), {
        p: [{ type: 'data', name, data }],
      })
    }
    case 'user':
      return draft(
        as(
          'user',
          omitUndefined({ ...preservedOf(message), name: message.name, list: isList(message.content) }),
        ),
        {
          p: foldContent(message.content),
        },
      )
    case 'system':
    case 'developer': {
      const { name, role, content } = message
      const speaker = { ...preservedOf(message), name, role: role === 'developer' ? role : undefined }
      return draft(as('system', omitUndefined(speaker)), {}, content)
    }
    default:
      return message satisfies never
  }
}

/** The data in an activity, and its metadata without what says how it was sent. */
export function readActivity({
  content,
  metadata,
}: {
  readonly content: Readonly<Record<string, unknown>>
  readonly metadata?: Record<string, unknown>
}): { readonly data: unknown; readonly metadata: Record<string, unknown> | undefined } {
  const { isWrapped, ...own } = getCountersignMetadata(metadata)
  return { data: isWrapped ? content.value : content, metadata: setCountersignMetadata(metadata, own) }
}

function foldContent(content: string | readonly ContentPart[]): MessagePart[] {
  if (typeof content === 'string') return [{ type: 'text', text: content }]
  return content.map((part) => {
    const { id } = part
    const metadata = isRecord(part.metadata) ? part.metadata : undefined
    if (part.type === 'text') return omitUndefined({ type: 'text' as const, text: part.text, id, metadata })
    return omitUndefined({ type: 'file' as const, media: part.type, source: part.source, id, metadata })
  })
}

function isList(content: string | readonly ContentPart[]): true | undefined {
  return (typeof content !== 'string' && content.length === 1 && content[0]?.type === 'text') || undefined
}

/** Reasoning without an assistant message after it. */
function foldThought(message: ReasoningMessage): Draft {
  const { id, subagentRunId } = message
  const { subagent } = withSubagent(message.metadata, message) ?? {}
  const metadata = subagentRunId === undefined ? undefined : { subagent }
  return draft(omitUndefined({ id, role: 'assistant' as const, metadata }), { r: [foldReasoning(message)] })
}

/** The subagent is stored on the message, not on the reasoning. */
function foldReasoning(message: ReasoningMessage): ReasoningPart {
  const { id, content: text, encryptedValue, subagentRunId, metadata } = message
  const { subagent: _, ...rest } = metadata ?? {}
  const others = Object.keys(rest).length > 0 ? rest : undefined
  const kept = subagentRunId === undefined ? metadata : others
  return omitUndefined({
    type: 'reasoning' as const,
    id,
    text,
    encryptedValue,
    metadata: keepPreservedType(kept, message),
  })
}

function foldCall(call: ToolCall): ToolCallPart {
  const {
    id,
    function: { name, arguments: text },
    metadata,
  } = call
  const { token, approval: asked, state, providerExecuted, error, kept } = readCallMetadata(metadata)
  const approval = foldApproval(asked, token)
  return omitUndefined({
    type: 'tool-call' as const,
    id,
    name,
    arguments: text,
    state: oneOf(state, 'cancelled', 'executing') ?? callState(approval),
    // Empty arguments mean none; arguments that are not JSON leave no input.
    input: text === '' ? {} : parseJson(text),
    approval,
    error:
      isRecord(error) && typeof error.message === 'string' ? { ...error, message: error.message } : undefined,
    providerExecuted: providerExecuted === true || undefined,
    metadata: setCountersignMetadata(kept, { ...getCountersignMetadata(kept), ...preservedOf(call) }),
  })
}

/** Reads our own record of an approval request and its answer from a history. */
function foldApproval(value: unknown, token: unknown): ToolCallPart['approval'] {
  const asked = isRecord(value) ? { ...value, token } : {}
  const question = readApproval(asked)
  if (!question) return undefined
  const {
    approved,
    reason,
    scope,
    mandate,
    input,
    edited,
    delivery,
    sentIn,
    problem,
  }: Record<string, unknown> = asked
  return {
    ...question,
    ...omitUndefined({
      approved: oneOf(approved, true, false),
      reason: asString(reason),
      scope: oneOf(scope, 'once', 'session'),
      mandate: asString(mandate),
      input,
      edited: isRecord(edited) ? { preview: edited.preview, proof: `${edited.proof}` } : undefined,
      delivery: readDelivery(delivery),
      sentIn: asString(sentIn),
      problem: readRefusal(problem),
    }),
  }
}

function callState(approval: ToolCallPart['approval']): ToolCallPart['state'] {
  if (!approval) return 'input-complete'
  return approval.approved === undefined ? 'approval-requested' : 'approval-responded'
}

/** A result belongs to the nearest earlier call with its id that has none yet. */
function foldResult(message: ToolMessage, open: OpenCalls): void {
  const { id, toolCallId, content, error, metadata } = message
  const target = open.get(toolCallId)?.pop()
  const part = target?.draft.parts.c[target.index]
  if (!target || !part) return
  const { c, o } = target.draft.parts
  // A call cancelled here stays cancelled, unless the server reports that an approval came first.
  if (part.state !== 'cancelled' || decisionOf(metadata) === 'approve')
    c[target.index] = { ...part, ...readResult(part, content, metadata, error) }
  o.push(
    omitUndefined({
      type: 'tool-result' as const,
      id,
      toolCallId,
      content,
      error,
      metadata: withPreserved(metadata, message),
    }),
  )
}

function finish({ message, content, parts }: Draft): UIMessage {
  const { order, createdAt, ...own } = getCountersignMetadata(message.metadata)
  const { p, r, c, o } = parts
  const text: MessagePart[] = content === '' ? [] : [{ type: 'text', text: content }]
  const arranged = arrange(content, parts, order) ?? [...r, ...text, ...p, ...c, ...o]
  return omitUndefined({
    id: message.id,
    role: message.role,
    parts: withOutput(arranged, finalOutput(content, message.metadata)),
    metadata: setCountersignMetadata(message.metadata, own),
    createdAt: typeof createdAt === 'number' ? createdAt : undefined,
  })
}

/** Adds the value of a structured reply to its text, or to the last piece of it. */
function withOutput(parts: MessagePart[], output: ReturnType<typeof finalOutput>): MessagePart[] {
  const last = output && parts.findLast(({ type }) => type === 'text')
  return last ? parts.map((part) => (part === last ? ({ ...part, ...output } as TextPart) : part)) : parts
}

/**
 * One entry of `metadata.countersign.order`: a number of characters of text, the next reasoning (`r`), call
 * (`c`), result (`o`) or content part (`p`), or a part that AG-UI has no place for.
 */
export type OrderStep = number | keyof Parts | EmbeddedPart

/** Never a call, so that a history cannot smuggle in an approval this way. */
type EmbeddedPart = FilePart | SourcePart | DataPart

function isEmbedded(value: unknown): value is EmbeddedPart {
  if (!isRecord(value)) return false
  const { type, media, source, id, name } = value
  if (type === 'file') return Boolean(asString(media)) && isRecord(source) && typeof source.value === 'string'
  return typeof (type === 'source' ? id : type === 'data' ? name : undefined) === 'string'
}

/** A longer order is ignored: each entry becomes a part, which costs far more than the two bytes that request it. */
const MOST_STEPS = 10_000

/** Arranges the parts by `order`, if it uses each of them exactly once. */
function arrange(content: string, parts: Parts, order: unknown): MessagePart[] | undefined {
  if (!Array.isArray(order) || order.length > MOST_STEPS) return undefined
  const rest = { r: parts.r.values(), p: parts.p.values(), c: parts.c.values(), o: parts.o.values() }
  let at = 0
  const arranged: MessagePart[] = []
  for (const step of order as readonly unknown[]) {
    const sign = oneOf(step, 'r', 'p', 'c', 'o')
    const part = sign ? rest[sign].next().value : isEmbedded(step) && step
    if (part) arranged.push(part)
    else if (Number.isInteger(step) && Number(step) >= 0) {
      const from = at
      at += Number(step)
      arranged.push({ type: 'text', text: content.slice(from, at) })
    } else return undefined
  }
  const isWhole = at === content.length && Object.values(rest).every((left) => left.next().done)
  return isWhole ? arranged : undefined
}
