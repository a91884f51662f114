import {
  getCountersignMetadata,
  isRecord,
  type Message,
  type MessagePart,
  omitUndefined,
  oneOf,
  readApproval,
  readDelivery,
  readRefusal,
  setCountersignMetadata,
  type ToolCallPart,
  type ToolResultPart,
  toAGUIMessages,
  type UIMessage,
} from '@countersign/core'
import { fromAGUIMessages } from '@countersign/core/ag-ui'
import { addTo } from '../encoding/groups.js'
import type {
  AssistantPromptMessage,
  PromptMessage,
  PromptToolCall,
  PromptToolResult,
  ToolApprovalRequestPart,
  ToolApprovalResponsePart,
} from './parts.js'

export interface PromptConversionOptions {
  /** Called for a request without its call, a response without its request and a result without its call. They are omitted. */
  readonly onWarning?: ((message: string) => void) | undefined
}

/**
 * Converts a prompt to UI messages. A request belongs to the nearest earlier call of its id that has none, a response to the request with
 * its approval id (the first one counts), a result to the nearest earlier call of its id that has none. Assistant messages with one
 * id are merged.
 */
export function fromPromptMessages(
  messages: readonly PromptMessage[],
  options: PromptConversionOptions = {},
): UIMessage[] {
  const reader = new PromptReader(options)
  for (const message of messages) reader.read(message)
  return reader.finish()
}

/** Converts a prompt to AG-UI messages, for a request: `metadata.countersign` has the answers that a server reads from its history. */
export function promptToAGUI(
  messages: readonly PromptMessage[],
  options: PromptConversionOptions = {},
): Message[] {
  return toAGUIMessages(fromPromptMessages(messages, options))
}

/** A UI message while its parts are collected. */
interface Draft {
  readonly message: Omit<UIMessage, 'parts'>
  readonly parts: MessagePart[]
}

/** The place of a call, to find it for later parts. */
interface Place {
  readonly draft: Draft
  readonly index: number
}

class PromptReader {
  readonly #warn: (message: string) => void
  readonly #drafts: Draft[] = []
  readonly #unasked = new Map<string, Place[]>()
  readonly #unresolved = new Map<string, Place[]>()
  readonly #asked = new Map<string, Place>()

  constructor({ onWarning = () => {} }: PromptConversionOptions) {
    this.#warn = onWarning
  }

  read(message: PromptMessage): void {
    switch (message.role) {
      case 'user':
      case 'system':
        this.#drafts.push(draftOf(message, [...message.content]))
        return
      case 'assistant':
        this.#say(message)
        return
      case 'tool':
        for (const part of message.content) {
          if (part.type === 'tool-result') this.#resolve(part)
          else this.#answer(part)
        }
        return
      default:
        message satisfies never
    }
  }

  /** The outcome of a call is read from its result, as in any history. */
  finish(): UIMessage[] {
    return this.#drafts.flatMap(({ message, parts }) => {
      const drafted = { ...message, parts }
      return parts.some(({ type }) => type === 'tool-call')
        ? fromAGUIMessages(toAGUIMessages([drafted]))
        : [drafted]
    })
  }

  #say(message: AssistantPromptMessage): void {
    const last = this.#drafts.at(-1)
    const goesOn = last?.message.role === 'assistant' && last.message.id === message.id
    const draft = goesOn ? last : draftOf(message, [])
    if (!goesOn) this.#drafts.push(draft)
    for (const part of message.content) {
      if (part.type === 'tool-approval-request') this.#ask(part)
      else if (part.type === 'tool-call') this.#call(draft, part)
      else draft.parts.push(part)
    }
  }

  #call(draft: Draft, call: PromptToolCall): void {
    const place = { draft, index: draft.parts.length }
    draft.parts.push(draftCall(call))
    addTo(this.#unasked, call.id, place)
    addTo(this.#unresolved, call.id, place)
  }

  #ask(request: ToolApprovalRequestPart): void {
    const { approvalId, toolCallId, metadata } = request
    if (this.#asked.has(approvalId)) {
      this.#warn(`The request ${approvalId} is there twice.`)
      return
    }
    const place = this.#unasked.get(toolCallId)?.pop()
    if (place === undefined) {
      this.#warn(`The request ${approvalId} is for no call.`)
      return
    }
    this.#asked.set(approvalId, place)
    const { problem, delivery, ...terms } = getCountersignMetadata(metadata)
    const approval = readApproval({ ...terms, id: approvalId })
    const { countersign: _, ...others } = isRecord(metadata) ? metadata : {}
    change(place, (call) => ({
      ...withExtra(call, 'request', isRecord(metadata) ? others : metadata),
      ...(approval && {
        approval: {
          ...approval,
          ...omitUndefined({ delivery: readDelivery(delivery), problem: readRefusal(problem) }),
        },
      }),
    }))
  }

  #answer(response: ToolApprovalResponsePart): void {
    const { approvalId, approved, reason, scope, options } = response
    const place = this.#asked.get(approvalId)
    if (place === undefined) {
      this.#warn(`The answer ${approvalId} is for no request.`)
      return
    }
    const { input } = getCountersignMetadata(options)
    const { countersign: _, ...others } = options ?? {}
    change(place, (call) => {
      if (call.approval === undefined || call.approval.approved !== undefined) return call
      const approval = { ...call.approval, approved, ...omitUndefined({ reason, scope, input }) }
      return { ...withExtra(call, 'response', others), approval }
    })
  }

  #resolve(part: PromptToolResult): void {
    if (part.preliminary) return
    const place = this.#unresolved.get(part.toolCallId)?.pop()
    if (place === undefined) {
      this.#warn(`The result for ${part.toolCallId} answers no call.`)
      return
    }
    place.draft.parts.push(draftResult(part, place.draft.message.id))
  }
}

function draftOf(
  { id, role, metadata, createdAt }: Exclude<PromptMessage, { role: 'tool' }>,
  parts: MessagePart[],
): Draft {
  return { message: { id, role, ...omitUndefined({ metadata, createdAt }) }, parts }
}

function change({ draft, index }: Place, to: (call: ToolCallPart) => ToolCallPart): void {
  const call = draft.parts[index]
  if (call?.type === 'tool-call') draft.parts[index] = to(call)
}

function draftCall({ id, name, arguments: text, providerExecuted, metadata }: PromptToolCall): ToolCallPart {
  const { state, error } = getCountersignMetadata(metadata)
  const message = isRecord(error) && typeof error.message === 'string' ? error.message : undefined
  return {
    type: 'tool-call',
    id,
    name,
    arguments: text,
    state: oneOf(state, 'cancelled', 'executing') ?? 'input-complete',
    ...(message !== undefined && { error: { ...(isRecord(error) && error), message } }),
    ...omitUndefined({ providerExecuted: providerExecuted || undefined, metadata }),
  }
}

/** A provider's data on a request or a response is kept on the call: neither UI messages nor AG-UI have a place for it. */
function withExtra(call: ToolCallPart, name: 'request' | 'response', extra: unknown): ToolCallPart {
  if (extra === undefined || (isRecord(extra) && Object.keys(extra).length === 0)) return call
  const metadata = setCountersignMetadata(call.metadata, {
    ...getCountersignMetadata(call.metadata),
    [name]: extra,
  })
  return { ...call, ...omitUndefined({ metadata }) }
}

function draftResult(part: PromptToolResult, messageId: string): ToolResultPart {
  const { toolCallId, content, result, error, metadata } = part
  return {
    type: 'tool-result',
    id: part.messageId ?? `result_${messageId}_${toolCallId}`,
    toolCallId,
    content: content ?? (JSON.stringify(result) || 'null'),
    ...omitUndefined({ error, metadata }),
    ...unflagged(part),
  }
}

/** Adds to a failure that has only `isFailure` the two marks that other readers know. */
function unflagged({ isFailure, result, error, metadata }: PromptToolResult) {
  if (!isFailure || error !== undefined || getCountersignMetadata(metadata).outcome !== undefined) return {}
  const { type, reason } = isRecord(result) ? result : {}
  const outcome = (oneOf(type, 'execution-denied', 'execution-cancelled') ?? 'execution-error').slice(10)
  const own = setCountersignMetadata(metadata, { ...getCountersignMetadata(metadata), outcome })
  return { error: typeof reason === 'string' ? reason : outcome, ...omitUndefined({ metadata: own }) }
}
