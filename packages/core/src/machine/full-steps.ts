import { activitySteps, patched } from './activities.js'
import { encryptedSteps } from './encrypted-values.js'
import { changeMessage } from './message-additions.js'
import { applySnapshot } from './snapshot.js'
import type { ChatState, MoreSteps } from './state.js'
import { applyCustom, unhandled } from './step.js'
import { structuredSteps } from './structured-text.js'
import { announce } from './subagents.js'

/** Steps for AG-UI events that few chats need. */
export const fullSteps: MoreSteps = {
  ...activitySteps,
  ...encryptedSteps,
  ...structuredSteps,
  CUSTOM(state, event) {
    switch (event.name) {
      case 'source':
      case 'message-metadata':
      case 'messages-dropped':
        return changeMessage(state, event) ?? unhandled(event)
      default:
        return applyCustom(state, event)
    }
  },
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
  SUBAGENT_FINISHED: (_, event) => unhandled(event),
  SUBAGENT_ERROR: (_, event) => unhandled(event),
}

function setShared(state: ChatState, shared: unknown): undefined {
  state.shared = shared
  state.pendingNotification = 'change'
}
