import type { QueuedMessage, UIMessage } from '@countersign/core'

/** A person's answer to a request for approval, by the approval's id. */
export interface ApprovalResponse {
  readonly id: string
  readonly approved: boolean
  readonly reason?: string
  /** The arguments as edited, whole; only where the request allows it. */
  readonly input?: unknown
  readonly scope?: 'once' | 'session'
}

/** A client tool's result, given by the application. */
export type ToolResult = { readonly toolCallId: string } & (
  | { readonly output: unknown }
  | { readonly error: string }
)

/** An answer to a question that concerns no tool call. */
export type InterruptResponse = { readonly id: string } & (
  | { readonly payload: unknown }
  | { readonly cancel: true }
)

/** What a person can do, or the clock (`expire`), each with the one value it takes. */
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
  readonly resume: undefined
  /** The id of the user message to answer again. Default: the last. */
  readonly regenerate: string | undefined
  readonly setMessages: readonly UIMessage[]
}

export type CommandName = keyof CommandValues
