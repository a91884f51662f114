import { isRecord } from '../value.js'
import { PROTOCOL_VERSION } from './events.js'

/** The texts that each event of a plain chat must have. */
const forms = /* @__PURE__ */ new Map<unknown, readonly string[]>(
  Object.entries({
    RUN_STARTED: ['threadId', 'runId'],
    RUN_FINISHED: ['threadId', 'runId'],
    RUN_ERROR: ['message'],
    TEXT_MESSAGE_START: ['messageId'],
    TEXT_MESSAGE_CONTENT: ['messageId', 'delta'],
    TEXT_MESSAGE_END: ['messageId'],
    REASONING_START: ['messageId'],
    REASONING_MESSAGE_START: ['messageId'],
    REASONING_MESSAGE_CONTENT: ['messageId', 'delta'],
    REASONING_MESSAGE_END: ['messageId'],
    REASONING_END: ['messageId'],
    TOOL_CALL_START: ['toolCallId', 'toolCallName'],
    TOOL_CALL_ARGS: ['toolCallId', 'delta'],
    TOOL_CALL_END: ['toolCallId'],
    TOOL_CALL_RESULT: ['messageId', 'toolCallId', 'content'],
    STEP_STARTED: ['stepName'],
    STEP_FINISHED: ['stepName'],
    RAW: [],
    CUSTOM: ['name'],
  }),
)

/** What a field of a plain event has to be, where it is there at all. */
const optional: Readonly<Record<string, (value: unknown) => boolean>> = {
  subagentRunId: () => false,
  parentMessageId: isText,
  code: isText,
  metadata: isRecord,
  name: isText,
  role: (role) => role === 'assistant' || role === 'tool' || role === 'reasoning',
  protocolVersion: (version) => version === PROTOCOL_VERSION,
  outcome: isOutcome,
}

/**
 * Whether an event is one of a plain chat, in a form that the machine can take as it is. It judges no other: what is rare, unknown or
 * wrong is for the strict reader.
 */
export function isPlain(event: unknown): event is { readonly type: string } {
  const texts = isRecord(event) && forms.get(event.type)
  return texts ? texts.every((name) => isText(event[name])) && areFine(event, optional) : false
}

function areFine(
  fields: Readonly<Record<string, unknown>>,
  checks: Readonly<Record<string, (value: unknown) => boolean>>,
): boolean {
  for (const name in checks) if (fields[name] !== undefined && !checks[name]?.(fields[name])) return false
  return true
}

function isText(value: unknown): value is string {
  return typeof value === 'string'
}

function isOutcome(outcome: unknown): boolean {
  if (!isRecord(outcome)) return false
  const { type, pendingToolCallIds = [], interrupts } = outcome
  if (type === 'success') return Array.isArray(pendingToolCallIds) && pendingToolCallIds.every(isText)
  return type === 'interrupt' && Array.isArray(interrupts) && isList(interrupts)
}

/** Questions about calls, each with an id of its own. */
function isList(interrupts: readonly unknown[]): boolean {
  const ids = new Set(interrupts.map((interrupt) => isRecord(interrupt) && interrupt.id))
  return interrupts.length > 0 && ids.size === interrupts.length && interrupts.every(isQuestion)
}

const ofQuestion = { ...optional, message: isText, expiresAt: isText, responseSchema: isRecord }

function isQuestion(interrupt: unknown): boolean {
  return (
    isRecord(interrupt) &&
    [interrupt.id, interrupt.reason, interrupt.toolCallId].every(isText) &&
    areFine(interrupt, ofQuestion)
  )
}
