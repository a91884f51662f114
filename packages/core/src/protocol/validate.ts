import { isRecord } from '../value.js'
import type { AGUIEvent } from './events.js'
import { violation } from './violation.js'

export type Fields = Readonly<Record<string, unknown>>

/**
 * Checks one value. Returns the same value, a copy without unknown fields, or `unknown` if nothing is left.
 * Throws if a known field has an invalid value.
 */
type Check = (value: unknown) => unknown

interface Field {
  readonly check: Check
  readonly isRequired: boolean
}

const unknown = Symbol()

/**
 * The current position and the removed fields. Both are reset for each event. Checks are synchronous and call
 * no outside code, so one shared instance of each is enough, and a delta allocates nothing.
 */
const path: string[] = []
let removed: string[] = []

function fail(expected: string): never {
  throw violation('malformed-event', path.join('/'), `must be ${expected}`)
}

/** Checks the members of an object or array; `*` matches every other key. If a required member is unknown, so is its container. */
function inside(
  value: Fields | readonly unknown[],
  described: ReadonlyMap<string, Field>,
  required: number,
): unknown {
  const fields = value as Fields
  let copy: Record<string, unknown> | undefined
  let found = 0
  for (const key in fields) {
    const child = fields[key]
    if (child === undefined && !Array.isArray(value)) continue
    const mark = removed.length
    path.push(key)
    const field = described.get(key) ?? described.get('*')
    const kept = field ? field.check(child) : unknown
    if (kept !== child) copy ??= { ...fields }
    if (kept === unknown) {
      removed.splice(mark, removed.length, path.join('/'))
      delete copy?.[key]
    } else if (copy) copy[key] = kept
    path.pop()
    if (!field?.isRequired) continue
    if (kept === unknown) return unknown
    found++
  }
  if (found < required) {
    for (const [key, { isRequired }] of described) {
      if (!isRequired || fields[key] !== undefined) continue
      path.push(key)
      fail('present')
    }
  }
  return copy ? (Array.isArray(value) ? Object.values(copy) : copy) : value
}

/** The primitive kinds. Error messages use the names. */
const plain: Readonly<Record<string, (value: unknown) => boolean>> = {
  string: (value) => typeof value === 'string',
  boolean: (value) => typeof value === 'boolean',
  integer: (value) => Number.isSafeInteger(value),
  count: (value) => Number.isSafeInteger(value) && Number(value) >= 0,
  pointer: (value) => typeof value === 'string' && /^(\/([^/~]|~[01])*)*$/.test(value),
  object: isRecord,
  any: () => true,
  nonnull: (value) => value !== null,
}

const must =
  (expected: string, holds: (value: unknown) => boolean): Check =>
  (value) =>
    holds(value) ? value : fail(expected)

const oneOf = (options: string, open?: string): Check => {
  const known = new Set<unknown>(options.split('|'))
  const check = must(options, (value) => known.has(value))
  return (value) => (open && typeof value === 'string' && !known.has(value) ? unknown : check(value))
}

/** `[]` is a list, `[+]` a list that is not empty, `[string]` a list or a string. */
const listOf = (item: Check, mark: string): Check => {
  const items = new Map([['*', { check: item, isRequired: false }]])
  return (value) => {
    if (mark === '[string]' && typeof value === 'string') return value
    return Array.isArray(value) && (value.length || mark !== '[+]')
      ? inside(value, items, 0)
      : fail(`array ${mark}`)
  }
}

/**
 * The fields of AG-UI 1.0. Each line is the name of a kind, `tag=value|value` if it is a member of a union, and its fields. A field is
 * `name`, `?` if optional, `~` to tolerate the `null` of older peers, then `:kind` (default: string) or `=the|only|values` (`^`: other
 * strings are unknown, not invalid); `[]` is a list, `[+]` a non-empty list, `[string]` a list or a string. `*` is every other field.
 */
function describe(): string {
  const common = 'id metadata?:object subagentRunId?'
  // AG-UI 1.1 adds the type of the value; what a newer server sends is kept and sent back.
  const preserved = `${common} encryptedValue? encryptedValueType?`
  const named = `${preserved} name? content`
  const open = '*?:any path:pointer'
  const base = 'timestamp?:integer rawEvent?~:nonnull metadata?:object'
  const own = `${base} subagentRunId?`
  const id = `${own} messageId`
  const call = `${own} toolCallId`
  const opened = 'parentMessageId?~ toolCallName'
  const role = 'name? role?=developer|system|assistant|user'
  const subagent = `${base} subagentRunId`
  const run = 'threadId runId protocolVersion? parentRunId?'
  return `source type=data value mimeType
source type=url value mimeType?
source type=file value mimeType? provider?
part type=text id? text metadata?:nonnull
part type=image|audio|video|document id? source:source metadata?~:nonnull
function name arguments
call type=function id function:function encryptedValue? encryptedValueType? metadata?:object
message role=developer|system ${named}
message role=assistant ${named}? toolCalls?:call[]
message role=user ${named}:part[string]
message role=tool ${preserved} toolCallId content:part[string] error?
message role=activity ${common} activityType content:object
message role=reasoning ${preserved} content
tool name description parameters?~:nonnull metadata?:object
context description value
resume interruptId status=resolved|cancelled payload?~:nonnull metadata?:object
input ${run} state?:nonnull messages:message[] tools?:tool[] context?:context[] forwardedProps?~:nonnull resume?:resume[]
interrupt ${common} reason message? toolCallId? responseSchema?:object expiresAt?
outcome type=success pendingToolCallIds?[]
outcome type=interrupt interrupts:interrupt[+]
outcome type=cancelled
end type=success
end type=suspended interruptIds?[]
usage provider? model? inputTokens?:count outputTokens?:count totalTokens?:count reasoningTokens?:count cachedInputTokens?:count cacheWriteInputTokens?:count
operation op=add|replace|test ${open} value:any
operation op=move|copy ${open} from:pointer
operation op=remove ${open}
event type=TEXT_MESSAGE_START ${id} ${role}
event type=TEXT_MESSAGE_CHUNK ${id}? delta? ${role}
event type=TEXT_MESSAGE_CONTENT|REASONING_MESSAGE_CONTENT ${id} delta
event type=TEXT_MESSAGE_END|REASONING_START|REASONING_END|REASONING_MESSAGE_END ${id}
event type=TOOL_CALL_START ${call} ${opened}
event type=TOOL_CALL_ARGS ${call} delta
event type=TOOL_CALL_END ${call}
event type=TOOL_CALL_CHUNK ${call}? delta? ${opened}?
event type=TOOL_CALL_RESULT ${id} toolCallId content:part[string] role?=tool
event type=REASONING_MESSAGE_START ${id} role=reasoning
event type=REASONING_MESSAGE_CHUNK ${id}? delta?
event type=REASONING_ENCRYPTED_VALUE ${own} subtype^=tool-call|message entityId encryptedValue encryptedValueType?
event type=STATE_SNAPSHOT ${own} snapshot:any
event type=STATE_DELTA ${own} delta:operation[]
event type=MESSAGES_SNAPSHOT ${base} messages:message[]
event type=ACTIVITY_SNAPSHOT ${id} activityType content:object replace?:boolean
event type=ACTIVITY_DELTA ${id} activityType patch:operation[]
event type=STEP_STARTED|STEP_FINISHED ${own} stepName
event type=SUBAGENT_STARTED ${subagent} name description? parentSubagentRunId? parentToolCallId? parentMessageId?
event type=SUBAGENT_FINISHED ${subagent} result?~:nonnull outcome?:end
event type=SUBAGENT_ERROR ${subagent} message code?
event type=RUN_STARTED ${base} ${run} input?:input
event type=RUN_FINISHED ${base} threadId runId result?~:nonnull outcome?~:outcome usage?:usage[] finishReason?:any
event type=RUN_ERROR ${base} message code? usage?:usage[]
event type=RAW ${own} event:any source?
event type=CUSTOM ${own} name value:any`
}

/** Compiles the description; returns the check of its last kind, `event`. */
function compile(): Check {
  const kinds = new Map(Object.entries(plain).map(([kind, holds]) => [kind, must(kind, holds)]))
  const unions = new Map<string, Map<unknown, Check>>()
  let last: Check = (value) => value

  const object = (fields: string): Check => {
    const described = new Map<string, Field>()
    let required = 0
    for (const [, name = '', optional, forgiven, open, values, kind = 'string', many] of fields.matchAll(
      /([\w*]+)(\?)?(~)?(\^)?(?:=([\w|-]+)|:(\w+))?(\[.*?\])?/g,
    )) {
      const one = values ? oneOf(values, open) : (kinds.get(kind) ?? fail(kind))
      const check = many ? listOf(one, many) : one
      described.set(name, {
        check: forgiven ? (value) => (value === null ? unknown : check(value)) : check,
        isRequired: !optional,
      })
      if (!optional) required++
    }
    return (value) => inside(value as Fields, described, required)
  }

  for (const line of describe().split('\n')) {
    const [, kind = '', tag, values = '', fields = ''] = /(\w+)(?: (\w+)=([\w|]+))?(.*)/.exec(line) ?? []
    const members = unions.get(kind) ?? new Map<unknown, Check>()
    const member = object(tag ? `${tag}:any${fields}` : fields)
    for (const value of values.split('|')) members.set(value, member)
    unions.set(kind, members)
    last = (found) => {
      if (!isRecord(found)) return fail('object')
      const check = members.get(tag ? found[tag] : '')
      // An unknown tag makes the value unknown; a missing tag makes it invalid.
      if (tag && typeof found[tag] !== 'string') fail(`object with a ${tag}`)
      return check ? check(found) : unknown
    }
    kinds.set(kind, last)
  }
  return last
}

const event = /* @__PURE__ */ compile()

/**
 * Validates the fields of one event against AG-UI 1.0. Returns the same object, a copy without fields that
 * AG-UI does not describe (their paths, such as `RUN_FINISHED/outcome`, are added to `omitted`), or
 * `undefined` for an event of unknown type. Does not check the order of events.
 *
 * @throws CountersignError `malformed-event`: a known field is missing, `null` or invalid.
 */
export function validateEvent(raw: unknown, omitted: string[] = []): AGUIEvent | undefined {
  const type = isRecord(raw) && raw.type
  // Only a failed event leaves something here. (Always setting the length would free the buffer each time.)
  if (path.length > 0) path.length = 0
  path.push(typeof type === 'string' ? type : 'event')
  if (typeof type !== 'string') fail('an object with a type')
  removed = omitted
  const kept = event(raw)
  path.pop()
  return kept === unknown ? undefined : (kept as AGUIEvent)
}
