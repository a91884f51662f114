import type { AGUIEvent, ApprovalOption, Interrupt, TokenUsage } from '@countersign/core'

/**
 * The next action of a scripted server, as plain data, so that a script can be printed, stored and shrunk.
 * The exception is `action`, which holds a function.
 */
export type Step = EventStep | FlowStep | HttpStep

/** Steps that become AG-UI events. */
export type EventStep =
  | { readonly step: 'started' }
  | { readonly step: 'text'; readonly deltas: readonly string[] }
  | { readonly step: 'text-start' }
  | { readonly step: 'text-delta'; readonly delta: string }
  | { readonly step: 'text-end' }
  | { readonly step: 'reasoning'; readonly text: string }
  | { readonly step: 'call'; readonly id: string; readonly name: string; readonly args: unknown }
  | { readonly step: 'call-start'; readonly id: string; readonly name: string }
  | { readonly step: 'call-args'; readonly id: string; readonly delta: string }
  | { readonly step: 'call-end'; readonly id: string }
  | {
      readonly step: 'ask'
      readonly approvalId: string
      readonly callId: string
      readonly options: AskOptions
    }
  | { readonly step: 'result'; readonly callId: string; readonly output: unknown }
  | {
      readonly step: 'failure'
      readonly callId: string
      readonly outcome: FailedOutcome
      readonly reason: string | undefined
    }
  | {
      readonly step: 'refuse'
      readonly approvalId: string
      readonly code: string
      readonly message: string | undefined
    }
  | { readonly step: 'client-ready'; readonly callId: string; readonly input: unknown }
  | { readonly step: 'resolve' }
  | {
      readonly step: 'event'
      readonly event: AGUIEvent | { readonly type: string; readonly [key: string]: unknown }
    }
  | { readonly step: 'finish'; readonly options: FinishOptions }
  | { readonly step: 'error'; readonly message: string; readonly code: string | undefined }

/** Steps that control timing, and how the stream continues or ends. */
export type FlowStep =
  | { readonly step: 'hold'; readonly name: string }
  | { readonly step: 'microtasks'; readonly count: number }
  | { readonly step: 'macrotasks'; readonly count: number }
  | { readonly step: 'action'; readonly label: string; readonly action: () => unknown }
  | { readonly step: 'cut'; readonly message: string }
  | { readonly step: 'end' }

/** Steps that only an HTTP server supports. */
export type HttpStep =
  | { readonly step: 'respond'; readonly status: number; readonly contentType: string; readonly body: string }
  | { readonly step: 'bytes'; readonly text: string }

/** How a call ended if its tool did not succeed. */
export type FailedOutcome = 'denied' | 'cancelled' | 'error'

/** The fields of an approval request besides its ids. */
export interface AskOptions {
  /** Default `['deny', 'once']`. */
  readonly options?: readonly ApprovalOption[]
  readonly allowEdits?: boolean | readonly string[]
  readonly message?: string
  readonly expiresAt?: string
  readonly display?: unknown
  /** Default `token-<approvalId>`; `null` for none. */
  readonly token?: string | null
  /** Replaces the call's own arguments, as a faulty or hostile server would. */
  readonly input?: unknown
  /** How approval is requested: by the event, by the interrupt that ends the run, or by both (default), as Countersign's server does. */
  readonly by?: 'event' | 'interrupt' | 'both'
}

/**
 * How the run ends. By default like a server that tracks what is open: with interrupts for the approval
 * requests of this run, else with `pendingToolCallIds` for calls left to the client, else plainly.
 */
export interface FinishOptions {
  /** `metadata.finishReason`. Default `tool_calls` if something is open, else `stop`. */
  readonly reason?: string
  /** Interrupts that are no tool approvals. */
  readonly interrupts?: readonly Interrupt[]
  /** Calls left to the client. Default: those of this run without a result and without an approval request. */
  readonly pending?: readonly string[]
  readonly usage?: TokenUsage[]
  readonly result?: unknown
}

/** How a stream ended: as scripted, or because the client disconnected. */
export type StreamEnd = 'finished' | 'failed' | 'cut' | 'ended' | 'aborted'

/** How this step ends the run, if it does. */
export function endOf(step: Step): StreamEnd | undefined {
  switch (step.step) {
    case 'finish':
      return 'finished'
    case 'error':
      return 'failed'
    case 'cut':
      return 'cut'
    case 'end':
    case 'respond':
      return 'ended'
    case 'event':
      if (step.event.type === 'RUN_FINISHED') return 'finished'
      return step.event.type === 'RUN_ERROR' ? 'failed' : undefined
    default:
      return undefined
  }
}

/** Prints a step on one line. */
export function printStep(step: Step): string {
  const { step: name, ...rest } = step
  const values = Object.values(rest).filter((value) => value !== undefined && typeof value !== 'function')
  return [name, ...values.map((value) => (typeof value === 'string' ? value : JSON.stringify(value)))].join(
    ' ',
  )
}
