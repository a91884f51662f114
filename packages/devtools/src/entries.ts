import type { Observation } from '@countersign/client'
import type { AGUIEvent, LocalEvent } from '@countersign/core'
import { type RecordedEnd, type TimelineEntry, toRecorded } from './form.js'
import { printAct, printStep } from './print.js'

/** AG-UI's types are in capitals, those of local steps are not. */
export function isEvent(step: AGUIEvent | LocalEvent): step is AGUIEvent {
  return /^[A-Z]/.test(step.type)
}

/** What is noted of a step. */
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

/** The names of the acts as the client's methods have them. */
const methods = {
  send: 'sendMessage',
  cancelQueued: 'cancelQueued',
  answer: 'addToolApprovalResponse',
  giveResult: 'addToolResult',
  respond: 'respondToInterrupt',
  expire: 'expire',
  stop: 'stop',
  retry: 'retry',
  resume: 'resume',
  regenerate: 'regenerate',
  setMessages: 'setMessages',
} as const satisfies Record<Extract<Observation, { readonly type: 'command' }>['name'], string>

/** What is noted of an act. */
export function actEntry(did: Extract<Observation, { readonly type: 'command' }>): TimelineEntry {
  const { name } = did
  const value = did.name === 'send' ? did.value.message : did.value
  const act = { name: methods[name], ...(value !== undefined && { value: copyOf(value) }) }
  return { kind: 'act', text: printAct(act), act }
}

/** As it is now, whatever becomes of the object; what has no JSON form was not said to the server either. */
function copyOf(value: unknown): unknown {
  try {
    return JSON.parse(JSON.stringify(value)) as unknown
  } catch {
    return undefined
  }
}
