import type { Observation } from '@countersign/client'
import type { AGUIEvent, LocalEvent } from '@countersign/core'
import { type RecordedEnd, type TimelineEntry, toRecorded } from './form.js'
import { printAction, printStep } from './print.js'

/** Types of AG-UI events are upper-case, those of local steps are not. */
export function isEvent(step: AGUIEvent | LocalEvent): step is AGUIEvent {
  return /^[A-Z]/.test(step.type)
}

/** The timeline entry of a step. */
export function stepEntry(step: AGUIEvent | LocalEvent, run: number): TimelineEntry {
  if (isEvent(step)) return { kind: 'event', run, event: step }
  const recorded = toRecorded(step)
  if (recorded.type === 'run-closed') return { kind: 'closed', run, how: howOf(recorded.end), step: recorded }
  return { kind: 'note', run, text: printStep(recorded), step: recorded }
}

function howOf(end: RecordedEnd): string {
  switch (end.type) {
    case 'success':
      return 'finished'
    case 'aborted':
      return 'aborted'
    case 'failed':
      return `failed: ${end.error.code}`
    default:
      return end satisfies never
  }
}

/** The client's method for each command. */
const methods = {
  send: 'sendMessage',
  continue: 'sendMessage',
  cancelQueued: 'cancelQueued',
  answer: 'addToolApprovalResponse',
  answerAll: 'addToolApprovalResponses',
  withdraw: 'withdrawApprovalResponse',
  giveResult: 'addToolResult',
  respond: 'respondToInterrupt',
  expire: 'expire',
  stop: 'stop',
  retry: 'retry',
  regenerate: 'regenerate',
  setMessages: 'setMessages',
  setState: 'setState',
  clearError: 'clearError',
} as const satisfies Record<Extract<Observation, { readonly type: 'command' }>['name'], string>

/** The timeline entry of a user action. */
export function actEntry(did: Extract<Observation, { readonly type: 'command' }>): TimelineEntry {
  const { name } = did
  const value = did.name === 'send' ? did.value.message : did.name === 'continue' ? undefined : did.value
  const action = { name: methods[name], ...(value !== undefined && { value: copyOf(value) }) }
  return { kind: 'action', text: printAction(action), action }
}

/** A copy, because the object may change later. A value without a JSON form was not sent to the server either. */
function copyOf(value: unknown): unknown {
  try {
    return JSON.parse(JSON.stringify(value)) as unknown
  } catch {
    return undefined
  }
}
