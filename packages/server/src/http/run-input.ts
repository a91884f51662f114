import {
  CountersignError,
  isCountersignError,
  isRecord,
  type Message,
  type RunAgentInput,
} from '@countersign/core'
import { createEventReader } from '@countersign/core/ag-ui'
import { isId } from '../encoding/ids.js'
import { jsonDepthExceeds } from '../encoding/strict-json.js'
import { isDecided, readCalls } from '../history/history.js'
import { DEFAULT_LIMITS, exceeds, type FullLimits } from '../limits.js'

/**
 * Parses the body of a chat request, after limiting its depth.
 *
 * @throws CountersignError `invalid-request`, `request-too-large`; `data.status` is the HTTP status.
 */
export function parseRunInput(text: string, limits: FullLimits): RunAgentInput {
  return readParsedInput(parseBody(text, limits), limits)
}

/**
 * Parses JSON, after limiting its depth.
 *
 * @throws CountersignError `invalid-request`
 */
export function parseBody(text: string, { depth } = DEFAULT_LIMITS): unknown {
  if (jsonDepthExceeds(text, depth)) throw tooDeep(depth)
  try {
    return JSON.parse(text)
  } catch {
    throw invalid('The body is not JSON.')
  }
}

/**
 * Validates an id from a request.
 *
 * @throws CountersignError `invalid-request`
 */
export function checkId(name: string, id: unknown, { idLength } = DEFAULT_LIMITS): string {
  if (isId(id, idLength)) return id
  const most = `${idLength} characters (the option \`limits.idLength\` of createAgent)`
  throw invalid(`${name} must be text of 1 to ${most} without control characters.`)
}

/** The query of a URL or a path, whatever the rest is: `new URL` throws for input that any caller can send (`//`). */
export function queryOf(url: string): URLSearchParams {
  const [, query = ''] = /^[^?#]*\?([^#]*)/.exec(url) ?? []
  return new URLSearchParams(query)
}

/**
 * Validates a chat request's body that is already parsed.
 *
 * @throws CountersignError `invalid-request`, `request-too-large`; `data.status` is the HTTP status.
 */
export function readParsedInput(body: unknown, limits: FullLimits = DEFAULT_LIMITS): RunAgentInput {
  checkValue(body, limits)
  const input = readShape(body)
  checkCounts(input, limits)
  for (const id of idsOf(input)) checkId('An id', id, limits)
  return input
}

/** RUN_STARTED of AG-UI can carry the input of its run, so the event's schema also validates requests. */
function readShape(body: unknown): RunAgentInput {
  if (!isRecord(body)) throw invalid('The body must be an object (AG-UI RunAgentInput).')
  const { threadId, runId, protocolVersion, state, ...rest } = body
  if (typeof threadId !== 'string' || typeof runId !== 'string')
    throw invalid('threadId and runId must be strings.')
  // 0.x requires a state in every request, and one deployed client without one sends null.
  const isNone = state === undefined || (state === null && protocolVersion === undefined)
  const shape = { ...rest, threadId, runId, protocolVersion, ...(!isNone && { state }) }
  let input: RunAgentInput | undefined
  try {
    createEventReader().push({ type: 'RUN_STARTED', threadId, runId, input: shape }, (event) => {
      if (event.type === 'RUN_STARTED') input = event.input
    })
  } catch (error) {
    const rule = isCountersignError(error)
      ? String(error.data.rule).replace('/input/', '')
      : 'it is malformed'
    throw invalid(`The body is no AG-UI RunAgentInput: ${rule}.`)
  }
  if (input === undefined) throw invalid('The body is no AG-UI RunAgentInput.')
  return input
}

function checkCounts({ messages, resume = [] }: RunAgentInput, limits: FullLimits): void {
  if (messages.length > limits.messages)
    throw exceeds('messages', limits, ['A request', 'messages'], 'Start a new conversation')
  if (resume.length > limits.answers) throw exceeds('answers', limits, ['A request', 'resume entries'], SPLIT)
  for (const message of messages) {
    if (message.role === 'assistant' && (message.toolCalls?.length ?? 0) > limits.callsPerMessage)
      throw exceeds('callsPerMessage', limits, ['A message', 'tool calls'])
  }
  checkOpenCalls(messages, limits)
}

const SPLIT = 'Send them in several requests'

/** Each call without a result costs a ledger lookup, and each decision on one a signature check. */
function checkOpenCalls(messages: readonly Message[], limits: FullLimits): void {
  const open = readCalls(messages).filter(({ result }) => result === undefined)
  if (open.length > limits.openCalls) {
    const what = `tool calls without a result, this one has ${open.length}`
    const hint = 'Close old ones with cancelAllPending() of @countersign/server'
    throw exceeds('openCalls', limits, ['A history', what], hint)
  }
  const decisions = open.filter(({ call }) => isDecided(call)).length
  if (decisions <= limits.answers) return
  const what = `decisions on calls without a result, this one has ${decisions}`
  throw exceeds('answers', limits, ['A history', what], SPLIT)
}

function* idsOf({ threadId, runId, messages, resume = [] }: RunAgentInput): Iterable<string> {
  yield threadId
  yield runId
  for (const { interruptId } of resume) yield interruptId
  for (const message of messages) {
    yield message.id
    if (message.role === 'tool') yield message.toolCallId
    if (message.role === 'assistant') for (const call of message.toolCalls ?? []) yield call.id
  }
}

/** Checks depth, keys and numbers of a parsed value. Iterative, because input may be deeply nested. */
function checkValue(body: unknown, limits: FullLimits): void {
  const open: [value: unknown, depth: number][] = [[body, 1]]
  for (let item = open.pop(); item !== undefined; item = open.pop()) {
    const [value, depth] = item
    // 1e400 is valid JSON, but would be stored as null.
    if (typeof value === 'number' && !Number.isFinite(value))
      throw invalid('A number is beyond the range of a double.')
    if (typeof value !== 'object' || value === null) continue
    if (depth > limits.depth) throw tooDeep(limits.depth)
    if (Object.hasOwn(value, '__proto__')) throw invalid('The key "__proto__" is refused.')
    for (const member of Object.values(value)) open.push([member, depth + 1])
  }
}

export function invalid(message: string, status = 400): CountersignError {
  return new CountersignError('invalid-request', message, { status })
}

export function tooMany(code: 'too-many-runs' | 'too-many-requests', message: string): CountersignError {
  return new CountersignError(code, message, { status: 429 })
}

function tooDeep(depth: number): CountersignError {
  return invalid(`The body nests deeper than ${depth} levels (the option \`limits.depth\` of createAgent).`)
}
