import type { AGUIEvent } from '../protocol/events.js'
import { applyAct, type LocalAct } from './acts.js'
import { askApproval, readApprovalEvent, refuseApproval } from './approvals.js'
import { type Effect, none, warn } from './effects.js'
import {
  endReasoning,
  endText,
  growReasoning,
  growText,
  keepEncrypted,
  patchActivity,
  snapshotActivity,
  startReasoning,
  startText,
} from './message-events.js'
import { failRun, finishRun, startRun } from './runs.js'
import { applySnapshot } from './snapshot.js'
import type { ChatState } from './state.js'
import { applyResult, endArguments, growArguments, readyClientTool, startCall } from './tool-calls.js'

/**
 * The machine: the only place that changes a conversation. Synchronous and deterministic: the same events and acts, in the same order,
 * give the same state; no clock, no ids of its own, no I/O. A step that is not legal changes nothing and says so in a warning.
 */
export function step(state: ChatState, event: AGUIEvent | LocalAct): readonly Effect[] {
  return isEvent(event) ? applyEvent(state, event) : applyAct(state, event)
}

/** AG-UI events are named in capitals, acts are not. */
function isEvent(event: AGUIEvent | LocalAct): event is AGUIEvent {
  const first = event.type.charCodeAt(0)
  return first >= 65 && first <= 90
}

function applyEvent(state: ChatState, event: AGUIEvent): readonly Effect[] {
  switch (event.type) {
    case 'TEXT_MESSAGE_CONTENT':
      return growText(state, event)
    case 'TOOL_CALL_ARGS':
      return growArguments(state, event)
    case 'REASONING_MESSAGE_CONTENT':
      return growReasoning(state, event)
    case 'TEXT_MESSAGE_START':
      return startText(state, event)
    case 'TEXT_MESSAGE_END':
      return endText(state, event)
    case 'TOOL_CALL_START':
      return startCall(state, event)
    case 'TOOL_CALL_END':
      return endArguments(state, event)
    case 'TOOL_CALL_RESULT':
      return applyResult(state, event)
    case 'REASONING_MESSAGE_START':
      return startReasoning(state, event)
    case 'REASONING_MESSAGE_END':
      return endReasoning(state, event)
    case 'REASONING_ENCRYPTED_VALUE':
      return keepEncrypted(state, event)
    case 'RUN_STARTED':
      return startRun(state, event)
    case 'RUN_FINISHED':
      return finishRun(state, event)
    case 'RUN_ERROR':
      return failRun(state, event)
    case 'STATE_SNAPSHOT':
      return setShared(state, event.snapshot)
    case 'STATE_DELTA':
      return patchShared(state, event.delta)
    case 'MESSAGES_SNAPSHOT':
      return applySnapshot(state, event)
    case 'ACTIVITY_SNAPSHOT':
      return snapshotActivity(state, event)
    case 'ACTIVITY_DELTA':
      return patchActivity(state, event)
    case 'SUBAGENT_STARTED':
      state.subagents.set(event.subagentRunId, event.name)
      return [{ type: 'unhandled', event }]
    case 'CUSTOM':
      return applyCustom(state, event)
    case 'REASONING_START':
    case 'REASONING_END':
      return none
    case 'TEXT_MESSAGE_CHUNK':
    case 'TOOL_CALL_CHUNK':
    case 'REASONING_MESSAGE_CHUNK':
      return warn(
        'illegal-step',
        `${event.type} has to be expanded before it reaches the machine (createEventReader does it).`,
      )
    case 'SUBAGENT_FINISHED':
    case 'SUBAGENT_ERROR':
    case 'STEP_STARTED':
    case 'STEP_FINISHED':
    case 'RAW':
      return [{ type: 'unhandled', event }]
    default:
      return [{ type: 'unhandled', event: event satisfies never }]
  }
}

function applyCustom(state: ChatState, event: Extract<AGUIEvent, { type: 'CUSTOM' }>): readonly Effect[] {
  switch (event.name) {
    case 'approval-requested': {
      const asked = readApprovalEvent(event.value)
      return asked
        ? askApproval(state, asked)
        : warn('malformed-value', 'An approval-requested event has no usable value.')
    }
    case 'approval-refused':
      return refuseApproval(state, event.value)
    case 'client-tool-ready':
      return readyClientTool(state, event.value)
    default:
      return [{ type: 'unhandled', event }]
  }
}

function setShared(state: ChatState, shared: unknown): readonly Effect[] {
  state.shared = shared
  state.owed = 'change'
  return none
}

function patchShared(
  state: ChatState,
  patch: Extract<AGUIEvent, { type: 'STATE_DELTA' }>['delta'],
): readonly Effect[] {
  if (!state.applyPatch) return warn('patch-failed', 'A state delta came, but no `statePatch` is configured.')
  try {
    return setShared(state, state.applyPatch(state.shared ?? {}, patch))
  } catch (error) {
    return warn('patch-failed', `A state delta does not apply: ${String(error)}`)
  }
}
