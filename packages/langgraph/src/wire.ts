import { isRecord } from '@countersign/core'

/** The data of a LangGraph server that is read here. Python servers use `snake_case` in places, JavaScript servers `camelCase`. */

export type Fields = Readonly<Record<string, unknown>>

/** A call in a message of the model. */
export interface LangGraphCall {
  readonly id: string
  readonly name: string
  readonly args: unknown
}

/** A message of the graph's state, or a chunk of one. */
export type LangGraphMessage =
  | { readonly type: 'human'; readonly id: string }
  | {
      readonly type: 'ai'
      readonly id: string
      readonly text: string
      readonly thought: string
      readonly calls: readonly LangGraphCall[]
      readonly callChunks: readonly LangGraphCallChunk[]
    }
  | {
      readonly type: 'tool'
      readonly id: string
      readonly toolCallId: string
      readonly text: string
      readonly failed: boolean
    }

/** A piece of a call's arguments. The first one of a call has its id and its name. */
export interface LangGraphCallChunk {
  readonly index: unknown
  readonly id: string | undefined
  readonly name: string | undefined
  readonly args: string
}

/** `interrupt(value)` of a graph, which waits for `command.resume[id]`. */
export interface LangGraphInterrupt {
  readonly id: string
  readonly value: unknown
}

/** A thread as stored on the server. */
export interface LangGraphState {
  readonly messages: readonly LangGraphMessage[]
  readonly interrupts: readonly LangGraphInterrupt[]
  /** Whether the graph has remaining steps. */
  readonly isUnfinished: boolean
}

/** Reads a list of messages, or a single one; other kinds, and messages without an id, are ignored. */
export function readMessages(value: unknown): readonly LangGraphMessage[] {
  return listOf(value).flatMap((one) => readMessage(one) ?? [])
}

export function readMessage(value: unknown): LangGraphMessage | undefined {
  if (!isRecord(value) || typeof value.id !== 'string') return undefined
  const { id, content } = value
  switch (value.type) {
    case 'human':
      return { type: 'human', id }
    case 'ai':
    case 'AIMessageChunk':
      return {
        type: 'ai',
        id,
        text: textOf(content),
        thought: thoughtOf(content),
        calls: listOf(value.tool_calls).flatMap((one) => readCall(one) ?? []),
        callChunks: listOf(value.tool_call_chunks).flatMap(readCallChunk),
      }
    case 'tool': {
      const { tool_call_id: toolCallId, status } = value
      if (typeof toolCallId !== 'string') return undefined
      return { type: 'tool', id, toolCallId, text: resultOf(content), failed: status === 'error' }
    }
    default:
      return undefined
  }
}

export function readCall(value: unknown): LangGraphCall | undefined {
  if (!isRecord(value) || typeof value.id !== 'string' || typeof value.name !== 'string') return undefined
  return { id: value.id, name: value.name, args: value.args ?? {} }
}

function readCallChunk(value: unknown): LangGraphCallChunk[] {
  if (!isRecord(value)) return []
  const { index, id, name, args } = value
  return [{ index: index ?? id, id: nonEmpty(id), name: nonEmpty(name), args: nonEmpty(args) ?? '' }]
}

export function readInterrupts(value: unknown): readonly LangGraphInterrupt[] {
  return listOf(value).flatMap((one) =>
    isRecord(one) && typeof one.id === 'string' ? [{ id: one.id, value: one.value }] : [],
  )
}

/** Reads the response to `GET /threads/{id}/state`. */
export function readState(value: unknown): LangGraphState {
  const { values, tasks, next } = isRecord(value) ? value : {}
  return {
    messages: readMessages(isRecord(values) ? values.messages : undefined),
    interrupts: listOf(tasks).flatMap((task) => readInterrupts(isRecord(task) ? task.interrupts : undefined)),
    isUnfinished: listOf(next).length > 0,
  }
}

/** An array as it is, anything else as its only item, null or undefined as an empty array. */
export function listOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value
  return value === undefined || value === null ? [] : [value]
}

export function grouped<T>(list: readonly T[], keyOf: (one: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const one of list) {
    const key = keyOf(one)
    const group = groups.get(key)
    if (group) group.push(one)
    else groups.set(key, [one])
  }
  return groups
}

/** The parsed JSON, or the text if it is not JSON. */
export function fromJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

function nonEmpty(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined
}

/** Content is a string or blocks; providers also have their own blocks. */
function textOf(content: unknown): string {
  return joined(content, (block) => (block.type === 'text' ? block.text : undefined))
}

function thoughtOf(content: unknown): string {
  return typeof content === 'string'
    ? ''
    : joined(content, ({ reasoning, thinking }) => reasoning ?? thinking)
}

function joined(content: unknown, pick: (block: Fields) => unknown): string {
  return listOf(content)
    .map((block) => (isRecord(block) ? pick(block) : block))
    .filter((text) => typeof text === 'string')
    .join('')
}

/** Anything but pure text is kept as JSON. */
function resultOf(content: unknown): string {
  const isText = listOf(content).every(
    (block) => typeof block === 'string' || (isRecord(block) && block.type === 'text'),
  )
  return isText ? textOf(content) : JSON.stringify(content)
}
