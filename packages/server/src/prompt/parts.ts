import {
  type DataPart,
  type FilePart,
  omitUndefined,
  type ReasoningPart,
  type SourcePart,
  type TextPart,
} from '@countersign/core'
import { type ToolOutcome, toResultContent } from '../outcome.js'

/** A tool call. `arguments` is the model's JSON text. */
export interface PromptToolCall {
  readonly type: 'tool-call'
  readonly id: string
  readonly name: string
  readonly arguments: string
  /** Whether the model's provider runs it. */
  readonly providerExecuted?: boolean
  readonly metadata?: Readonly<Record<string, unknown>>
}

/** An approval request for a call. It stays in the history after it is answered. */
export interface ToolApprovalRequestPart {
  readonly type: 'tool-approval-request'
  /** Not the call's id, and never derived from it. */
  readonly approvalId: string
  readonly toolCallId: string
  /** Countersign's terms (options, token, expiry) are under `countersign`; other keys belong to a provider. */
  readonly metadata?: unknown
}

/** A user's answer. */
export interface ToolApprovalResponsePart {
  readonly type: 'tool-approval-response'
  readonly approvalId: string
  readonly approved: boolean
  readonly reason?: string
  /** What the approval covers. */
  readonly scope?: 'once' | 'session'
  /** The provider requested approval and must get the answer; nothing runs here. */
  readonly providerExecuted?: boolean
  /** Countersign's own data (edited arguments) is under `countersign`; other keys belong to a provider. */
  readonly options?: Readonly<Record<string, unknown>>
}

/** How a call ended. Only `isFailure` marks a failure; `result` is then `{ type: 'execution-denied', reason? }` or similar. */
export interface PromptToolResult {
  readonly type: 'tool-result'
  readonly toolCallId: string
  readonly name: string
  readonly isFailure: boolean
  readonly result: unknown
  /** The tool still streams: a history omits these. */
  readonly preliminary?: boolean
  /** Id of the AG-UI tool message. */
  readonly messageId?: string
  /** The content as it was sent, if it is not the JSON of `result`. */
  readonly content?: string | readonly unknown[]
  /** The error of the tool message. */
  readonly error?: string
  readonly metadata?: Readonly<Record<string, unknown>>
}

/** A part of a user or system message. */
export type PlainPart = TextPart | FilePart | SourcePart | DataPart
/** A part of an assistant message. */
export type AssistantPart = PlainPart | ReasoningPart | PromptToolCall | ToolApprovalRequestPart
/** A part of a tool message: results and answers in any order. */
export type ToolMessagePart = PromptToolResult | ToolApprovalResponsePart
/** Any part of a prompt. */
export type PromptPart = AssistantPart | ToolMessagePart

interface PromptMessageBase {
  readonly id: string
  readonly metadata?: Readonly<Record<string, unknown>>
  /** Milliseconds since the epoch, if known. */
  readonly createdAt?: number
}

export interface PlainPromptMessage extends PromptMessageBase {
  readonly role: 'user' | 'system'
  readonly content: readonly PlainPart[]
}

/** A message of the model. One AG-UI message may become several of these, with one id, if results came in between. */
export interface AssistantPromptMessage extends PromptMessageBase {
  readonly role: 'assistant'
  readonly content: readonly AssistantPart[]
}

export interface ToolPromptMessage {
  readonly role: 'tool'
  readonly content: readonly ToolMessagePart[]
}

/** One message of the history for a prompt, including approvals. */
export type PromptMessage = PlainPromptMessage | AssistantPromptMessage | ToolPromptMessage

/** Creates an approval request without `undefined` members. */
export function toolApprovalRequest(
  request: Pick<ToolApprovalRequestPart, 'approvalId' | 'toolCallId' | 'metadata'>,
): ToolApprovalRequestPart {
  const { approvalId, toolCallId, metadata } = request
  return {
    type: 'tool-approval-request',
    approvalId,
    toolCallId,
    ...(metadata !== undefined && { metadata }),
  }
}

/** The argument of {@link toolApprovalResponse}. */
export interface ResponseInit {
  readonly approvalId: string
  readonly approved: boolean
  readonly reason?: string | undefined
  /** Default for an approval: `once`. A denial has none. */
  readonly scope?: 'once' | 'session' | undefined
  readonly providerExecuted?: boolean | undefined
  readonly options?: Readonly<Record<string, unknown>> | undefined
}

/** Creates an answer. An approval covers only this call (`once`) unless `scope` says otherwise. */
export function toolApprovalResponse(response: ResponseInit): ToolApprovalResponsePart {
  const { approvalId, approved, reason, scope, providerExecuted, options } = response
  const reach = approved ? (scope ?? ('once' as const)) : undefined
  return {
    type: 'tool-approval-response',
    approvalId,
    approved,
    ...omitUndefined({ reason, scope: reach, providerExecuted: providerExecuted || undefined, options }),
  }
}

/** Creates the part for a call's outcome: a failure keeps its payload, with the flag in its metadata. */
export function toolResult(
  call: { readonly id: string; readonly name: string },
  outcome: ToolOutcome,
): PromptToolResult {
  const { content, flag } = toResultContent(outcome)
  const base = { type: 'tool-result', toolCallId: call.id, name: call.name } as const
  if (flag === undefined) return { ...base, isFailure: false, result: JSON.parse(content) }
  const reason = 'reason' in outcome ? outcome.reason : undefined
  return {
    ...base,
    isFailure: true,
    result: JSON.parse(content),
    error: reason ?? flag.outcome,
    metadata: { countersign: { ...flag } },
  }
}

/** Creates a tool message with results and answers, in the order given. */
export function toolMessage(content: readonly ToolMessagePart[]): ToolPromptMessage {
  return { role: 'tool', content }
}

/** Whether a part is an approval request. */
export function isApprovalRequest(part: { readonly type: string }): part is ToolApprovalRequestPart {
  return part.type === 'tool-approval-request'
}

/** Whether a part is a user's answer. */
export function isApprovalResponse(part: { readonly type: string }): part is ToolApprovalResponsePart {
  return part.type === 'tool-approval-response'
}
