import { isCountersignError, isRecord } from '@countersign/core'
import { validateEvent } from '@countersign/core/ag-ui'
import {
  anything,
  type Check,
  conversation,
  count,
  either,
  flag,
  list,
  message,
  messages,
  nothing,
  one,
  optional,
  queued,
  shape,
  text,
} from './checks.js'

const answered = {
  approved: flag,
  reason: optional(text),
  scope: optional(one('once', 'session')),
  mandate: optional(text),
  edited: optional(shape({ proof: text })),
}

const options = optional(shape({ headers: optional(isRecord), body: optional(isRecord) }))
const answer = either(shape({ id: text, cancel: one(true) }), shape({ id: text, ...answered, options }))

/** The argument of each command. */
const commands: Readonly<Record<string, Check>> = {
  send: (value) => queued(value) && shape({ replaces: optional(text), options })(value),
  continue: options,
  cancelQueued: text,
  answer,
  answerAll: list(answer),
  withdraw: text,
  giveResult: shape({ toolCallId: text, error: either(text, nothing), options }),
  respond: shape({ id: text, cancel: optional(one(true)), options }),
  expire: list(text),
  stop: nothing,
  retry: nothing,
  regenerate: shape({ messageId: optional(text), options }),
  setState: isRecord,
  clearError: nothing,
  setMessages: messages,
}

export function isCommand(name: string, value: unknown): boolean {
  return Object.hasOwn(commands, name) && commands[name]?.(value) === true
}

const error: Check = isCountersignError
const ended = either(
  shape({ type: one('success', 'aborted') }),
  shape({ type: one('failed'), error, resumable: optional(flag) }),
)
const finished = shape({
  runId: text,
  outcome: one('success', 'interrupt', 'cancelled'),
  pendingToolCallIds: optional(list(text)),
})

/** The fields of each step from another tab. No step replaces the conversation, except for the user's own command. */
const steps: Readonly<Record<string, Check>> = {
  'user-message': shape({ message: (value) => message(value) && isRecord(value) && value.role === 'user' }),
  append: shape({ message }),
  queue: shape({ item: queued }),
  unqueue: shape({ id: text }),
  answer: shape({ approvalId: text, ...answered }),
  close: shape({ ids: list(text), because: one('moved-on', 'expired') }),
  respond: shape({ interruptId: text, response: isRecord }),
  'tool-started': shape({ toolCallId: text }),
  'tool-output': shape({
    toolCallId: text,
    messageId: text,
    error: optional(shape({ message: text, code: optional(text) })),
  }),
  'run-opened': shape({ runId: text, again: optional(flag) }),
  'run-rejoined': shape({ runId: text, from: optional(list(count)), isUnheard: optional(flag) }),
  'connection-changed': shape({ isLost: flag }),
  'run-closed': shape({ end: ended, uncertain: optional(flag) }),
  'set-messages': shape({ messages }),
  'answer-sent': shape({ approvalId: text }),
  'answer-returned': shape({ approvalId: text }),
  'withdraw-answer': shape({ approvalId: text }),
  'set-state': isRecord,
  'clear-error': anything,
  failed: shape({ error }),
  truncate: shape({ messageId: text, inclusive: optional(flag) }),
}

export function isStep(value: unknown): boolean {
  if (!isRecord(value) || typeof value.type !== 'string') return false
  if (Object.hasOwn(steps, value.type)) return steps[value.type]?.(value) === true
  try {
    return validateEvent(value) !== undefined
  } catch {
    return false
  }
}

const place = either(
  text,
  (value) => Array.isArray(value) && value.length === 2 && value.every((position) => count(position)),
)

const run = either(
  shape({ phase: one('idle'), last: optional(finished), brokenOff: either(text, one(undefined, false)) }),
  shape({
    phase: one('submitted', 'streaming'),
    runId: text,
    carried: list(place),
    again: optional(flag),
    finish: optional(finished),
    failure: optional(error),
  }),
)

const mirror = shape({
  live: list(shape({ at: count, text: flag, streaming: flag, provisional: flag })),
  calls: list(
    shape({
      at: place,
      answered: flag,
      interrupted: flag,
      token: optional(text),
      ready: optional(isRecord),
      replay: optional(count),
      outputSent: optional(flag),
      inDoubt: optional(flag),
      askedIn: optional(text),
    }),
  ),
  repeats: optional(list((value) => Array.isArray(value) && text(value[0]) && count(value[1]))),
  unsent: list(place),
  run,
  subagents: list(shape({ id: text, name: optional(text), parents: optional(list(shape({ id: text }))) })),
  state: anything,
  error: optional(error),
})

export function isMirror(value: unknown): boolean {
  return conversation(value) && mirror(value)
}
