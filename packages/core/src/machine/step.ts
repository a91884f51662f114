import type { AGUIEvent, EventOf } from '../protocol/events.js'
import { copied } from '../value.js'
import { approvalSteps, askApproval, readApprovalEvent, refuseApproval } from './approvals.js'
import { conversationSteps } from './conversation-steps.js'
import { type Effect, effectsOf, type Outcome, type Step } from './effects.js'
import { askLiveInterrupt, closeLiveInterrupt } from './interrupts.js'
import { addSource, messageSteps } from './message-events.js'
import { patched } from './patch.js'
import { runSteps } from './runs.js'
import { applySnapshot } from './snapshot.js'
import type { ChatState, MoreSteps, StepTable } from './state.js'
import { announce } from './subagents.js'
import { callSteps, readyClientTool } from './tool-calls.js'

/** Events that are the application's own. */
type Unhandled = 'SUBAGENT_FINISHED' | 'SUBAGENT_ERROR' | 'STEP_STARTED' | 'STEP_FINISHED' | 'RAW'

/** By a call, since a bundler cannot tell that a spread at the top of a module does nothing else and would keep the machine for a page without it. */
function stepsByType() {
  const table: Omit<StepTable, Unhandled | keyof MoreSteps> = {
    ...messageSteps,
    ...callSteps,
    ...approvalSteps,
    ...runSteps,
    ...conversationSteps,
    MESSAGES_SNAPSHOT: applySnapshot,
    STATE_SNAPSHOT: (state, { snapshot }) => setShared(state, snapshot),
    STATE_DELTA: (state, { delta }) =>
      patched(state, state.shared === undefined ? {} : state.shared, delta, (shared) =>
        setShared(state, shared),
      ),
    SUBAGENT_STARTED(state, event) {
      announce(state, event)
      return unhandled(event)
    },
    CUSTOM: applyCustom,
    REASONING_START: nothing,
    REASONING_END: nothing,
    // `createEventReader` expands them before they come here.
    TEXT_MESSAGE_CHUNK: illegal,
    TOOL_CALL_CHUNK: illegal,
    REASONING_MESSAGE_CHUNK: illegal,
  }
  return new Map(Object.entries(table))
}

const base = /* @__PURE__ */ stepsByType()

/**
 * The machine: the only place that changes a conversation. Synchronous and deterministic: the same events and acts, in the same order,
 * give the same state; no clock, no ids of its own, no I/O. A step that is not legal changes nothing and says so in a warning.
 */
export function step(state: ChatState, given: Step): readonly Effect[] {
  const { type } = given
  const isMore = type === 'restore' || type === 'mirror'
  // What others do with their objects afterwards must change nothing here. A delta holds none, and a record is nobody else's.
  const isDelta = 'delta' in given && typeof given.delta === 'string' && !given.metadata
  const event = isMore || isDelta ? given : copied(given)
  const apply = isMore ? (state.moreSteps[type] ?? illegal) : base.get(type)
  // The entry of a type takes the steps of that type: the table's own type says so, but not of two lookups.
  return effectsOf(event, apply ? apply(state, event as never) : unhandled(event))
}

function unhandled(event: Step): readonly Effect[] {
  return [{ type: 'unhandled', event: event as AGUIEvent }]
}

function nothing(): undefined {}

function illegal(): Outcome {
  return 'illegal-step'
}

function applyCustom(state: ChatState, event: EventOf<'CUSTOM'>): Outcome {
  switch (event.name) {
    case 'approval-requested': {
      const asked = readApprovalEvent(event.value)
      return asked ? askApproval(state, asked) : 'malformed-value'
    }
    case 'approval-refused':
      return refuseApproval(state, event.value)
    case 'interrupt-requested':
      return askLiveInterrupt(state, event.value)
    case 'interrupt-closed':
      return closeLiveInterrupt(state, event.value)
    case 'client-tool-ready':
      return readyClientTool(state, event.value)
    case 'source':
      return addSource(state, event) ?? unhandled(event)
    default:
      return unhandled(event)
  }
}

function setShared(state: ChatState, shared: unknown): undefined {
  state.shared = shared
  state.pendingNotification = 'change'
}
