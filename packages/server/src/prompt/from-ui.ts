import {
  getCountersignMetadata,
  isRecord,
  isSendable,
  type Message,
  type MessagePart,
  omitUndefined,
  readCallMetadata,
  readResult as readOutcome,
  sameJson,
  setCountersignMetadata,
  type ToolCallPart,
  type ToolResultPart,
  type UIMessage,
} from '@countersign/core'
import { fromAGUIMessages } from '@countersign/core/ag-ui'
import {
  type AssistantPart,
  type PlainPart,
  type PromptMessage,
  type PromptToolCall,
  type ToolApprovalRequestPart,
  type ToolApprovalResponsePart,
  type ToolMessagePart,
  toolApprovalRequest,
} from './parts.js'
import { resultPart } from './stream.js'

/**
 * Converts UI messages to a prompt: a call with an `approval` becomes the call and its request in the assistant message and, once
 * answered, a response in the tool message after it. `fromPromptMessages` restores the same UI messages. Calls with incomplete
 * arguments are omitted.
 */
export function toPromptMessages(messages: readonly UIMessage[]): PromptMessage[] {
  return messages.flatMap((message) => {
    const { role, parts } = message
    if (role === 'assistant') return splitAssistant(message)
    return [{ ...about(message), role, content: parts.filter(isPlain) }]
  })
}

/** Converts AG-UI messages to a prompt. */
export function promptFromAGUI(messages: readonly Message[]): PromptMessage[] {
  return toPromptMessages(fromAGUIMessages(messages))
}

function about({ id, metadata, createdAt }: UIMessage) {
  return { id, ...omitUndefined({ metadata, createdAt }) }
}

function isPlain(part: MessagePart): part is PlainPart {
  return part.type === 'text' || part.type === 'file' || part.type === 'source' || part.type === 'data'
}

/** Parts after a result start another message with the same id, so that the order of parts needs no record. */
function splitAssistant(message: UIMessage): PromptMessage[] {
  const split: PromptMessage[] = []
  const names = new Map<string, string>()
  const ended = message.parts.filter((part) => part.type === 'tool-result')
  const ends = new Map(ended.map((part) => [part.toolCallId, part]))
  let content: AssistantPart[] = []
  let responses: ToolMessagePart[] = []
  let results: ToolMessagePart[] = []
  const close = () => {
    const head = split.length === 0 ? about(message) : { id: message.id }
    split.push({ ...head, role: 'assistant', content })
    const answers = [...responses, ...results]
    if (answers.length > 0) split.push({ role: 'tool', content: answers })
    content = []
    responses = []
    results = []
  }
  for (const part of message.parts) {
    if (part.type === 'tool-result') {
      const name = names.get(part.toolCallId)
      if (name !== undefined) results.push(resultPart(name, { ...part, messageId: part.id }))
      continue
    }
    if (part.type === 'tool-call' && !isSendable(part)) continue
    if (results.length > 0) close()
    if (part.type !== 'tool-call') {
      content.push(part)
      continue
    }
    names.set(part.id, part.name)
    const { call, request, response } = readCall(part, ends.get(part.id))
    content.push(call, ...(request === undefined ? [] : [request]))
    if (response !== undefined) responses.push(response)
  }
  if (content.length > 0 || results.length > 0 || split.length === 0) close()
  return split
}

function readCall(
  part: ToolCallPart,
  end: ToolResultPart | undefined,
): {
  readonly call: PromptToolCall
  readonly request?: ToolApprovalRequestPart
  readonly response?: ToolApprovalResponsePart
} {
  const { kept } = readCallMetadata(part.metadata)
  const { request: requested, response: responded, ...own } = getCountersignMetadata(kept)
  const { id, name, approval, providerExecuted } = part
  const extra = approval === undefined ? omitUndefined({ request: requested, response: responded }) : {}
  const metadata = setCountersignMetadata(kept, {
    ...own,
    ...extra,
    ...(isTold(part, end) ? {} : unresolved(part)),
  })
  const call: PromptToolCall = {
    type: 'tool-call',
    id,
    name,
    arguments: part.arguments,
    ...omitUndefined({ providerExecuted: providerExecuted || undefined, metadata }),
  }
  if (approval === undefined) return { call }
  return { call, ...readApproval(part, approval, requested, responded) }
}

/** A call's state, if its history can't express it otherwise. */
function unresolved({ state, error }: ToolCallPart) {
  if (state === 'executing') return { state }
  return state === 'cancelled' ? omitUndefined({ state, error }) : {}
}

/** Whether the result alone determines how the call ended. */
function isTold(call: ToolCallPart, end: ToolResultPart | undefined): boolean {
  if (end === undefined) return false
  const told = readOutcome(call, end.content, end.metadata, end.error)
  return told.state === call.state && sameJson(told.error ?? null, call.error ?? null)
}

function readApproval(
  { id: toolCallId, providerExecuted }: ToolCallPart,
  approval: NonNullable<ToolCallPart['approval']>,
  requested: unknown,
  responded: unknown,
) {
  const { id: approvalId, needsApproval: _, options, approved, reason, scope, input, ...rest } = approval
  const terms = omitUndefined({ ...rest, options: isDefault(options) ? undefined : options })
  const metadata =
    isRecord(requested) || requested === undefined ? setCountersignMetadata(requested, terms) : requested
  const request = toolApprovalRequest({ approvalId, toolCallId, metadata })
  if (approved === undefined) return { request }
  const answered = setCountersignMetadata(
    isRecord(responded) ? responded : undefined,
    omitUndefined({ input }),
  )
  const response: ToolApprovalResponsePart = {
    type: 'tool-approval-response',
    approvalId,
    approved,
    ...omitUndefined({ reason, scope, providerExecuted: providerExecuted || undefined, options: answered }),
  }
  return { request, response }
}

/** Whether these are the options of a request that names none. */
function isDefault([first, second, ...more]: readonly string[]): boolean {
  return first === 'deny' && second === 'once' && more.length === 0
}
