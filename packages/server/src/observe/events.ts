import type { TokenUsage } from '@countersign/core'

/** What every event says about its run. */
export interface RunFields {
  /** Milliseconds since the epoch, by the agent's clock (`now`). */
  readonly at: number
  readonly threadId: string
  readonly runId: string
  /** A keyed hash of `context.subject`, as in the audit trail. */
  readonly ownerHash: string
  /** The step of the run: 1 for its first call of the model. 0: before it, while answers to approval requests are carried out. */
  readonly step: number
}

export interface RunStarted {
  readonly type: 'run-started'
}

export interface RunFinished {
  readonly type: 'run-finished'
  /** Milliseconds. */
  readonly duration: number
  /** `interrupt`: it ended with open approval requests. `cancelled`: it was stopped. */
  readonly outcome: 'success' | 'interrupt' | 'cancelled' | 'error'
  readonly finishReason?: string | undefined
  /** With `error`: the code of RUN_ERROR. */
  readonly code?: string | undefined
  /** What all its steps have used. */
  readonly usage: readonly TokenUsage[]
}

export interface ModelStarted {
  readonly type: 'model-started'
  /** `model.id`. */
  readonly model: string
  readonly content?: ModelInput | undefined
}

export interface ModelFinished {
  readonly type: 'model-finished'
  readonly model: string
  /** Milliseconds, with the time that its reader took. */
  readonly duration: number
  /** Milliseconds until its first event. */
  readonly firstEventAfter?: number | undefined
  readonly outcome: 'finished' | 'stopped' | 'error'
  readonly finishReason?: string | undefined
  /** With `error`: `model-failed` or `model-timeout`. */
  readonly code?: string | undefined
  readonly usage: readonly TokenUsage[]
  readonly content?: ModelOutput | undefined
}

interface CallFields {
  readonly toolCallId: string
  readonly toolName: string
}

/** A server tool starts. Calls of client tools and of the model's provider run elsewhere and have no events. */
export interface CallStarted extends CallFields {
  readonly type: 'call-started'
  /** Whether an approval allowed it. */
  readonly approved: boolean
  readonly content?: { readonly input: string | undefined } | undefined
}

export interface CallFinished extends CallFields {
  readonly type: 'call-finished'
  /** Milliseconds. */
  readonly duration: number
  /** `interrupted`: it was aborted or took too long, and may or may not have had an effect. */
  readonly outcome: 'result' | 'error' | 'interrupted'
  /** With `error` and `interrupted`, such as `tool-failed`, `invalid-output` or `result-too-large`. */
  readonly code?: string | undefined
  readonly content?: { readonly output: string | undefined } | undefined
}

/** A call of the model that can't run: an unknown tool, invalid arguments, or a policy that blocks it. */
export interface CallRefused extends CallFields {
  readonly type: 'call-refused'
  /** The kind of its outcome, such as `denied` or `execution_error`, or a code that says more. */
  readonly code: string
}

export interface ApprovalRequested extends CallFields {
  readonly type: 'approval-requested'
  readonly approvalId: string
}

/** A request was answered or closed, or a session grant allowed a call (`via: 'grant'`, without `approvalId`). */
export interface ApprovalSettled extends CallFields {
  readonly type: 'approval-settled'
  readonly approvalId?: string | undefined
  readonly decision: string
  /** How the answer arrived, as in the audit trail; `server` if nobody answered. */
  readonly via?: string | undefined
}

/** An answer was refused. */
export interface ApprovalRefused {
  readonly type: 'approval-refused'
  /** Absent if the conversation holds no such call. */
  readonly toolCallId?: string | undefined
  readonly toolName?: string | undefined
  readonly approvalId: string
  readonly code: string
}

/** The request to a model. Only for observers that set `content`. */
export interface ModelInput {
  readonly system?: string | undefined
  /** A list of `ModelMessage`, as JSON. */
  readonly messages: string | undefined
}

/** The reply of a model. Only for observers that set `content`. */
export interface ModelOutput {
  /** A list of `ModelMessage`, as JSON. */
  readonly messages: string | undefined
}

export type RunEventDetails =
  | RunStarted
  | RunFinished
  | ModelStarted
  | ModelFinished
  | CallStarted
  | CallFinished
  | CallRefused
  | ApprovalRequested
  | ApprovalSettled
  | ApprovalRefused

/** Something in a run that is worth a line in a log, or a span. It contains no arguments and no texts, unless the observer asks for them. */
export type RunEvent = RunFields & RunEventDetails

/**
 * Receives the events of all runs of an agent, in order. It is not awaited: an observer that throws, rejects or takes its time changes
 * nothing. Failures are logged as warnings.
 */
export interface Observe {
  (event: RunEvent): void | Promise<void>
  /** Adds `content` to events: arguments, results and messages, as JSON. Default `false`. */
  readonly content?: boolean | undefined
  /**
   * Wraps the work that an event reports as started, so that what the tool or the model does inside belongs to it (a tracing context). It
   * must call `work` at once and return its promise.
   */
  readonly within?:
    | (<T>(event: RunFields & (ModelStarted | CallStarted), work: () => Promise<T>) => Promise<T>)
    | undefined
}
