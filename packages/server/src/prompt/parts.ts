import {
  type DataPart,
  type FilePart,
  omitUndefined,
  type ReasoningPart,
  type SourcePart,
  type TextPart,
} from '@countersign/core'
import { type ToolOutcome, toResultContent } from '../outcome.js'

/** A call of a tool. `arguments` is the model's JSON text. */
export interface PromptToolCall {
  readonly type: 'tool-call'
  readonly id: string
  readonly name: string
  readonly arguments: string
  /** The model's provider runs it. */
  readonly providerExecuted?: boolean
  readonly metadata?: Readonly<Record<string, unknown>>
}

/** The person is asked about a call. It stays in the history when it has been answered. */
export interface ToolApprovalRequestPart {
  readonly type: 'tool-approval-request'
  /** Not the call's id and never derived from it. */
  readonly approvalId: string
  readonly toolCallId: string
  /** Countersign's terms (options, token, expiry) are under `countersign`; other keys belong to a provider. */
  readonly metadata?: unknown
}

/** What the person answered. */
export interface ToolApprovalResponsePart {
  readonly type: 'tool-approval-response'
  readonly approvalId: string
  readonly approved: boolean
  readonly reason?: string
  /** How far a yes reaches. */
  readonly scope?: 'once' | 'session'
  /** The provider asked and is to be told; nothing runs here. */
  readonly providerExecuted?: boolean
  /** Countersign's own (edited arguments) are under `countersign`; other keys belong to a provider. */
  readonly options?: Readonly<Record<string, unknown>>
}

/** How a call ended. A failure is told by `isFailure` alone; `result` is then `{ type: 'execution-denied', reason? }` or the like. */
export interface PromptToolResult {
  readonly type: 'tool-result'
  readonly toolCallId: string
  readonly name: string
  readonly isFailure: boolean
  readonly result: unknown
  /** A tool that streams is not done yet: a history leaves these out. */
  readonly preliminary?: boolean
  /** Id of the AG-UI tool message. */
  readonly messageId?: string
  /** The text as it was sent, where it is not the JSON of `result`. */
  readonly content?: string | readonly unknown[]
  /** What the tool message says went wrong. */
  readonly error?: string
  readonly metadata?: Readonly<Record<string, unknown>>
}

/** What a message of the person or of the system holds. */
export type PlainPart = TextPart | FilePart | SourcePart | DataPart
/** What an assistant's message holds. */
export type AssistantPart = PlainPart | ReasoningPart | PromptToolCall | ToolApprovalRequestPart
/** What a tool message holds: results and answers, mixed, in their order. */
export type ToolMessagePart = PromptToolResult | ToolApprovalResponsePart
/** Any part of a prompt. */
export type PromptPart = AssistantPart | ToolMessagePart

interface PromptMessageBase {
  readonly id: string
  readonly metadata?: Readonly<Record<string, unknown>>
  /** Milliseconds since the epoch, where known. */
  readonly createdAt?: number
}

export interface PlainPromptMessage extends PromptMessageBase {
  readonly role: 'user' | 'system'
  readonly content: readonly PlainPart[]
}

/** What the model said. One AG-UI message may take several of these, of one id, where results came in between. */
export interface AssistantPromptMessage extends PromptMessageBase {
  readonly role: 'assistant'
  readonly content: readonly AssistantPart[]
}

export interface ToolPromptMessage {
  readonly role: 'tool'
  readonly content: readonly ToolMessagePart[]
}

/** One message of the history a model is prompted with, approvals and all. */
export type PromptMessage = PlainPromptMessage | AssistantPromptMessage | ToolPromptMessage

/** A request, without anything that is `undefined`. */
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

/** What {@link toolApprovalResponse} takes. */
export interface ResponseInit {
  readonly approvalId: string
  readonly approved: boolean
  readonly reason?: string | undefined
  /** Default for a yes: `once`. A no has none. */
  readonly scope?: 'once' | 'session' | undefined
  readonly providerExecuted?: boolean | undefined
  readonly options?: Readonly<Record<string, unknown>> | undefined
}

/** An answer. A yes reaches this call only (`once`) unless `scope` says otherwise. */
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

/** How a call ended, as a part: a failure keeps its payload and the flag beside it. */
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

/** A tool message with results and answers, in the order given. */
export function toolMessage(content: readonly ToolMessagePart[]): ToolPromptMessage {
  return { role: 'tool', content }
}

/** Whether a part is a request to the person. */
export function isApprovalRequest(part: { readonly type: string }): part is ToolApprovalRequestPart {
  return part.type === 'tool-approval-request'
}

/** Whether a part is the person's answer. */
export function isApprovalResponse(part: { readonly type: string }): part is ToolApprovalResponsePart {
  return part.type === 'tool-approval-response'
}
