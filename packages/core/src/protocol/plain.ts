import { isRecord } from '../value.js'
import { type AGUIEvent, PROTOCOL_VERSION } from './events.js'

/** Field names, and whether each is required. */
type Form = ReadonlyMap<string, boolean>

/** Parses `id name?`: a required field and an optional one. */
function formOf(fields: string): Form {
  return new Map(fields.split(' ').map((field) => [field.replace('?', ''), !field.endsWith('?')]))
}

const common = 'type timestamp? metadata? rawEvent?'
const text = `${common} messageId`
const call = `${common} toolCallId`
const run = `${common} threadId runId`

/** The events of a plain chat, in a form that the machine can take unchanged. */
const forms: ReadonlyMap<unknown, Form> = /* @__PURE__ */ new Map(
  Object.entries({
    RUN_STARTED: `${run} protocolVersion?`,
    RUN_FINISHED: `${run} outcome? usage? result? finishReason?`,
    RUN_ERROR: `${common} message code? usage?`,
    TEXT_MESSAGE_START: `${text} role? name?`,
    TEXT_MESSAGE_CONTENT: `${text} delta`,
    TEXT_MESSAGE_END: text,
    REASONING_START: text,
    REASONING_MESSAGE_START: `${text} role`,
    REASONING_MESSAGE_CONTENT: `${text} delta`,
    REASONING_MESSAGE_END: text,
    REASONING_END: text,
    TOOL_CALL_START: `${call} toolCallName parentMessageId?`,
    TOOL_CALL_ARGS: `${call} delta`,
    TOOL_CALL_END: call,
    TOOL_CALL_RESULT: `${text} toolCallId content role?`,
    STEP_STARTED: `${common} stepName`,
    STEP_FINISHED: `${common} stepName`,
    RAW: `${common} event source?`,
    CUSTOM: `${common} name value`,
  }).map(([type, fields]) => [type, formOf(fields)]),
)
const success = /* @__PURE__ */ formOf('type pendingToolCallIds?')
const interrupted = /* @__PURE__ */ formOf('type interrupts')
const question = /* @__PURE__ */ formOf('id reason toolCallId message? expiresAt? responseSchema? metadata?')
const used = /* @__PURE__ */ formOf(
  'provider? model? inputTokens? outputTokens? totalTokens? reasoningTokens? cachedInputTokens? cacheWriteInputTokens?',
)

/** Checks for fields that are not strings. */
const checks: Readonly<Record<string, (value: unknown, of: Readonly<Record<string, unknown>>) => boolean>> = {
  timestamp: Number.isSafeInteger,
  // The text of a structured reply is read by the steps loaded later.
  metadata: (metadata) => isRecord(metadata) && !Object(metadata.countersign).output,
  responseSchema: isRecord,
  rawEvent: isThere,
  result: isThere,
  finishReason: () => true,
  // What few servers add to messages is read by the steps loaded later.
  name: (name) => isText(name) && !/^(source|message-metadata|messages-dropped)$/.test(String(name)),
  event: () => true,
  value: () => true,
  protocolVersion: (version) => version === PROTOCOL_VERSION,
  role: (role, { type }) =>
    role ===
    (type === 'TOOL_CALL_RESULT' ? 'tool' : type === 'TEXT_MESSAGE_START' ? 'assistant' : 'reasoning'),
  pendingToolCallIds: (ids) => Array.isArray(ids) && ids.every(isText),
  interrupts: (list) =>
    isListOf(list, question) && list.length > 0 && new Set(list.map(({ id }) => id)).size === list.length,
  outcome: (outcome) =>
    isRecord(outcome) && fits(outcome, outcome.type === 'success' ? success : interrupted),
  usage: (list) => isListOf(list, used),
}

/**
 * Whether an event belongs to a plain chat and the machine can take it unchanged. `false` is no verdict:
 * rare, unknown or invalid events are left to the strict reader.
 */
export function isPlain(event: unknown): event is { readonly type: string } {
  const form = isRecord(event) && forms.get(event.type)
  return form ? fits(event as Readonly<Record<string, unknown>>, form) : false
}

function fits(fields: Readonly<Record<string, unknown>>, form: Form): boolean {
  for (const [name, isRequired] of form) if (isRequired && fields[name] === undefined) return false
  for (const name in fields) {
    const value = fields[name]
    if (value === undefined) continue
    if (!form.has(name)) return false
    const check = name.endsWith('Tokens') ? isCount : (checks[name] ?? isText)
    if (!check(value, fields)) return false
  }
  return true
}

function isListOf(list: unknown, form: Form): list is readonly Readonly<Record<string, unknown>>[] {
  return Array.isArray(list) && list.every((item) => isRecord(item) && fits(item, form))
}

function isText(value: unknown): boolean {
  return typeof value === 'string'
}

function isCount(value: unknown): boolean {
  return Number.isSafeInteger(value) && Number(value) >= 0
}

function isThere(value: unknown): boolean {
  return value !== null
}

/**
 * Whether a delta continues the previous one. Most events do: they have only the three fields of a delta, and
 * cannot break a rule that the previous one kept.
 */
export function goesOn(before: Readonly<Record<string, unknown>>, raw: unknown): raw is AGUIEvent {
  return (
    isRecord(raw) &&
    raw.type === before.type &&
    raw.messageId === before.messageId &&
    raw.toolCallId === before.toolCallId &&
    typeof raw.delta === 'string' &&
    countOf(raw) === 3
  )
}

export function countOf(fields: object): number {
  let count = 0
  for (const _ in fields) count++
  return count
}
