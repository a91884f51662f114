import { isTerminal } from '../messages.js'
import type { AGUIEvent, EventOf } from '../protocol/events.js'
import { copied, isRecord } from '../value.js'
import { approvalSteps } from './approval-answer.js'
import { refuseApproval } from './approval-refusal.js'
import { argumentSteps } from './call-arguments.js'
import { takeResult } from './call-result.js'
import { touch } from './changes.js'
import { clientCallSteps, readyClientTool } from './client-calls.js'
import { conversationSteps } from './conversation-steps.js'
import { type Effect, effectsOf, type Outcome, type Step } from './effects.js'
import { askLiveInterrupt, closeLiveInterrupt } from './interrupts.js'
import { messageSteps } from './message-events.js'
import { readApprovalEvent } from './read-approval.js'
import { askLive, runSteps } from './runs.js'
import type { ChatState, StepTable } from './state.js'

/** What every chat needs; `ChatState.moreSteps` has the rest. In a function, because bundlers keep top-level spreads even if unused. */
function stepsByType() {
  const table: Partial<StepTable> = {
    ...messageSteps,
    ...argumentSteps,
    ...clientCallSteps,
    ...approvalSteps,
    ...runSteps,
    ...conversationSteps,
    CUSTOM: applyCustom,
    TOOL_CALL_RESULT: takeResult,
    REASONING_START: nothing,
    REASONING_END: nothing,
    // These belong to the application.
    STEP_STARTED: (_, event) => unhandled(event),
    STEP_FINISHED: (_, event) => unhandled(event),
    RAW: (_, event) => unhandled(event),
  }
  return new Map(Object.entries(table))
}

const base = /* @__PURE__ */ stepsByType()

/**
 * The state machine: the only place that changes a conversation. Synchronous and deterministic: the same events in the same order
 * give the same state. It uses no clock, generates no ids and does no I/O. An illegal step changes nothing and returns a warning.
 */
export function step(state: ChatState, given: Step): readonly Effect[] {
  const { type } = given
  // Copied, so that callers may mutate their objects afterwards. A delta contains none, and a record is not shared.
  const isDelta = 'delta' in given && typeof given.delta === 'string' && !given.metadata
  const isOwn = isDelta || type === 'restore' || type === 'mirror'
  const event = isOwn ? given : copied(given)
  // Those that are loaded later may replace a simpler one.
  const apply = state.moreSteps[type] ?? base.get(type)
  // The entry for a type accepts the steps of that type; TypeScript cannot infer this across two lookups.
  return effectsOf(event, apply ? apply(state, event as never) : 'illegal-step')
}

/** The application gets the event as well. */
function noteProgress(state: ChatState, value: unknown): void {
  const call = isRecord(value) ? state.calls.get(String(value.toolCallId)) : undefined
  if (!call || !isRecord(value) || isTerminal(call.state)) return
  call.progress = value.data
  touch(state, call)
}

export function unhandled(event: Step): readonly Effect[] {
  return [{ type: 'unhandled', event: event as AGUIEvent }]
}

function nothing(): undefined {}

/** `CUSTOM`, but for the names that `fullSteps` has. */
export function applyCustom(state: ChatState, event: EventOf<'CUSTOM'>): Outcome {
  switch (event.name) {
    case 'approval-requested': {
      const asked = readApprovalEvent(event.value)
      return asked ? askLive(state, asked) : 'malformed-value'
    }
    case 'approval-refused':
      return refuseApproval(state, event.value)
    case 'interrupt-requested':
      return askLiveInterrupt(state, event.value)
    case 'interrupt-closed':
      return closeLiveInterrupt(state, event.value)
    case 'tool-progress':
      noteProgress(state, event.value)
      return unhandled(event)
    case 'client-tool-ready':
      return readyClientTool(state, event.value)
    default:
      return unhandled(event)
  }
}
