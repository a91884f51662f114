import type { ToolOutcome } from '../outcome.js'

/** Approval is requested for a call. */
export interface ApprovalRequestedEvent {
  readonly type: 'approval-requested'
  readonly approvalId: string
  readonly toolCallId: string
  readonly toolName: string
  readonly input: unknown
}

/** A running tool reports progress, or streams an element. */
export interface ToolProgressEvent {
  readonly type: 'progress'
  readonly toolCallId: string
  readonly toolName: string
  readonly data: unknown
}

/** How a call ended: its one result. */
export interface ToolOutputEvent {
  readonly type: 'output'
  readonly toolCallId: string
  readonly toolName: string
  readonly outcome: ToolOutcome
}

/** What happens while a plan is carried out. */
export type PlanEvent = ApprovalRequestedEvent | ToolProgressEvent | ToolOutputEvent

type PlanEventHandlers<Result> = {
  readonly [Type in PlanEvent['type']]: (event: Extract<PlanEvent, { readonly type: Type }>) => Result
}

/** Calls the handler for an event's type; omitting one is a type error. */
export function matchPlanEvent<Result>(event: PlanEvent, handlers: PlanEventHandlers<Result>): Result {
  switch (event.type) {
    case 'approval-requested':
      return handlers['approval-requested'](event)
    case 'progress':
      return handlers.progress(event)
    case 'output':
      return handlers.output(event)
    default:
      return event satisfies never
  }
}

/** Whether approval is requested. */
export function isApprovalRequested(event: PlanEvent): event is ApprovalRequestedEvent {
  return event.type === 'approval-requested'
}

/** Whether a running tool reports progress. */
export function isToolProgress(event: PlanEvent): event is ToolProgressEvent {
  return event.type === 'progress'
}

/** Whether a call has ended. */
export function isToolOutput(event: PlanEvent): event is ToolOutputEvent {
  return event.type === 'output'
}

/** Reads a stream of events to its end and returns the results, in order of arrival. */
export async function drainOutputs(events: AsyncIterable<PlanEvent>): Promise<readonly ToolOutputEvent[]> {
  const outputs: ToolOutputEvent[] = []
  for await (const event of events) if (isToolOutput(event)) outputs.push(event)
  return outputs
}
