import type { EditedPreview, QueuedMessage, RequestOptions, UIMessage } from '@countersign/core'

/** A user's answer to an approval request, by the approval's id. */
export interface ApprovalResponse {
  readonly id: string
  readonly approved: boolean
  readonly reason?: string
  /** The complete edited arguments; only if the request allows edits. */
  readonly input?: unknown
  /** The preview of these arguments, from `previewEdits`. Required if the request has a preview. */
  readonly edited?: EditedPreview
  readonly scope?: 'once' | 'session'
  /** The id of one of the request's `mandates`, in place of `scope`: a standing approval, or a standing denial with `approved: false`. */
  readonly mandate?: string
  /** Of the request that carries the answer. Kept in memory only: after a reload, the answer is sent without them. */
  readonly options?: RequestOptions
}

/** Closes an approval request without an answer: the call is neither approved nor denied. */
export interface ApprovalCancellation {
  readonly id: string
  readonly cancel: true
}

/** A client tool's result, provided by the application. */
export type ToolResult = { readonly toolCallId: string; readonly options?: RequestOptions } & (
  | { readonly output: unknown }
  | { readonly error: string }
)

/** A response to an interrupt that is no tool approval. */
export type InterruptResponse = { readonly id: string; readonly options?: RequestOptions } & (
  | { readonly payload: unknown }
  | { readonly cancel: true }
)

/** What a user, or a timer (`expire`), can do, each with its one argument. */
export interface CommandValues {
  readonly send: QueuedMessage
  /** Sends the conversation as it is, with unsent answers. */
  readonly continue: RequestOptions
  /** The id of a queued message. */
  readonly cancelQueued: string
  readonly answer: ApprovalResponse | ApprovalCancellation
  readonly answerAll: readonly (ApprovalResponse | ApprovalCancellation)[]
  /** The id of an approval. */
  readonly withdraw: string
  readonly giveResult: ToolResult
  readonly respond: InterruptResponse
  /** Ids of approvals. */
  readonly expire: readonly string[]
  readonly stop: undefined
  readonly retry: undefined
  /** The id of a message of the reply to regenerate, or of its user message. Default: the last. */
  readonly regenerate: { readonly messageId?: string | undefined; readonly options?: RequestOptions }
  readonly setState: { readonly state?: unknown }
  readonly clearError: undefined
  readonly setMessages: readonly UIMessage[]
}

export type CommandName = keyof CommandValues
