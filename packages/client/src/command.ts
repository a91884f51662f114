import type { EditedPreview, QueuedMessage, UIMessage } from '@countersign/core'

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
}

/** A client tool's result, provided by the application. */
export type ToolResult = { readonly toolCallId: string } & (
  | { readonly output: unknown }
  | { readonly error: string }
)

/** A response to an interrupt that is no tool approval. */
export type InterruptResponse = { readonly id: string } & (
  | { readonly payload: unknown }
  | { readonly cancel: true }
)

/** What a user, or a timer (`expire`), can do, each with its one argument. */
export interface CommandValues {
  readonly send: QueuedMessage
  /** The id of a queued message. */
  readonly cancelQueued: string
  readonly answer: ApprovalResponse
  readonly giveResult: ToolResult
  readonly respond: InterruptResponse
  /** Ids of approvals. */
  readonly expire: readonly string[]
  readonly stop: undefined
  readonly retry: undefined
  /** The id of a message of the reply to regenerate, or of its user message. Default: the last. */
  readonly regenerate: string | undefined
  readonly setMessages: readonly UIMessage[]
}

export type CommandName = keyof CommandValues
