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
import { MAX_ANSWERS, MAX_CALLS, MAX_OPEN_CALLS } from '../limits.js'

const MAX_DEPTH = 64
const MAX_MESSAGES = 20_000

/**
 * Parses the body of a chat request, after limiting its depth.
 *
 * @throws CountersignError `invalid-request`, `request-too-large`; `data.status` is the HTTP status.
 */
export function parseRunInput(text: string): RunAgentInput {
  return readParsedInput(parseBody(text))
}

/**
 * Parses JSON, after limiting its depth.
 *
 * @throws CountersignError `invalid-request`
 */
export function parseBody(text: string): unknown {
  if (jsonDepthExceeds(text, MAX_DEPTH)) throw invalid(`The body nests deeper than ${MAX_DEPTH} levels.`)
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
export function checkId(name: string, id: unknown): string {
  if (typeof id === 'string' && isId(id)) return id
  throw invalid(`${name} must be text of 1 to 256 characters without control characters.`)
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
export function readParsedInput(body: unknown): RunAgentInput {
  checkValue(body)
  const input = readShape(body)
  checkCounts(input)
  for (const id of idsOf(input)) {
    if (!isId(id)) throw invalid('An id is empty, longer than 256 characters, or holds control characters.')
  }
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

function checkCounts({ messages, resume = [] }: RunAgentInput): void {
  if (messages.length > MAX_MESSAGES) throw tooLarge(`A request has at most ${MAX_MESSAGES} messages.`)
  if (resume.length > MAX_ANSWERS) throw tooLarge(`A request has at most ${MAX_ANSWERS} resume entries.`)
  for (const message of messages) {
    if (message.role === 'assistant' && (message.toolCalls?.length ?? 0) > MAX_CALLS) {
      throw tooLarge(`A message has at most ${MAX_CALLS} tool calls.`)
    }
  }
  checkOpenCalls(messages)
}

/** Each call without a result costs a ledger lookup, and each decision on one a signature check. */
function checkOpenCalls(messages: readonly Message[]): void {
  const open = readCalls(messages).filter(({ result }) => result === undefined)
  if (open.length > MAX_OPEN_CALLS) {
    throw tooLarge(
      `A history has at most ${MAX_OPEN_CALLS} tool calls without a result, this one has ${open.length}. Close old ones with cancelAllPending() of @countersign/server.`,
    )
  }
  const decisions = open.filter(({ call }) => isDecided(call)).length
  if (decisions > MAX_ANSWERS) {
    throw tooLarge(
      `A history has at most ${MAX_ANSWERS} decisions on calls without a result, this one has ${decisions}. Send them in several requests.`,
    )
  }
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
function checkValue(body: unknown): void {
  const open: [value: unknown, depth: number][] = [[body, 1]]
  for (let item = open.pop(); item !== undefined; item = open.pop()) {
    const [value, depth] = item
    // 1e400 is valid JSON, but would be stored as null.
    if (typeof value === 'number' && !Number.isFinite(value))
      throw invalid('A number is beyond the range of a double.')
    if (typeof value !== 'object' || value === null) continue
    if (depth > MAX_DEPTH) throw invalid(`The body nests deeper than ${MAX_DEPTH} levels.`)
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

export function tooLarge(message: string): CountersignError {
  return new CountersignError('request-too-large', message, { status: 413 })
}
