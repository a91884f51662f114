import {
  CountersignError,
  getCountersignMetadata,
  isRecord,
  type Message,
  PROTOCOL_VERSION,
  parseJson,
  type RunAgentInput,
  sameJson,
} from '@countersign/core'
import type { Agent, ChatOptions } from '@countersign/server'
import {
  type Arrival,
  checkId,
  checkRequest,
  findUnansweredCalls,
  invalid,
  parseBody,
  randomId,
  readParsedInput,
  readText,
  readThread,
  unknownCaller,
} from '@countersign/server/http-kit'
import { type AiSdkMessage, type AiSdkPart, isToolPart } from '../message.js'
import { answersOf, historyOf } from './history.js'
import type { Place } from './left-behind.js'
import { repliedTo } from './thread.js'

/** A parsed chat request of an AI SDK client. */
export interface AiSdkRequest {
  /** The same request for an agent. `threadId` is the SDK's chat id. */
  readonly input: RunAgentInput
  /** The assistant message that the response continues: the one that the request names, or the last message if it is the assistant's. */
  readonly continued: AiSdkMessage | undefined
  /** What the request replaces: the last user message (`edit`), or the reply to it (`regenerate`). */
  readonly replaces?: 'edit' | 'regenerate' | undefined
}

/**
 * Reads a chat request of the AI SDK (`DefaultChatTransport`): POST, `application/json` only, within the limits of any other request.
 *
 * Authenticate before you call it: the sender of the body is not known here.
 *
 * @throws CountersignError `invalid-request`, `request-too-large`, `too-many-requests`; `data.status` is the HTTP status: 400, 405, 408,
 * 413, 415 or 429.
 */
export async function readAiSdkRequest(request: Request): Promise<AiSdkRequest> {
  return readFrom(request, unknownCaller)
}

interface ReadRequest extends AiSdkRequest {
  /** What only our route needs to know. The ids are the page's. */
  readonly place: Place
}

export async function readFrom(request: Request, arrival: Arrival): Promise<ReadRequest> {
  const { headers, method } = request
  checkRequest(method, headers.get('content-type'), headers.get('content-length'), arrival.limits)
  const text = await readText(request.body?.getReader(), arrival)
  return readBody(parseBody(text, arrival.limits), arrival.limits)
}

/**
 * Reads a chat request's body that is already parsed.
 *
 * @throws CountersignError `invalid-request`, `request-too-large`
 */
export function readAiSdkBody(body: unknown): AiSdkRequest {
  return readBody(body, unknownCaller.limits)
}

function readBody(body: unknown, limits: Arrival['limits']): ReadRequest {
  if (!isRecord(body) || !Array.isArray(body.messages))
    throw invalid('The body must be an AI SDK chat request: { id, messages }.')
  const messages = body.messages.map((message, at) => readMessage(message, at, limits))
  const resume = answersOf(messages)
  const last = messages.at(-1)
  const input = readParsedInput(
    {
      threadId: checkId('id', body.id, limits),
      runId: randomId('run_'),
      protocolVersion: PROTOCOL_VERSION,
      messages: historyOf(messages),
      tools: [],
      context: [],
      ...(resume.length > 0 && { resume }),
    },
    limits,
  )
  const named = namedIn(body.messageId, messages)
  const continued = named?.role === 'assistant' ? named : undefined
  return {
    input,
    continued,
    place: placeOf(messages, continued),
    ...(last?.role === 'user' && replacing(body, last, named === undefined)),
  }
}

/**
 * The message that the response goes into. An answer to an earlier message names that message, and the SDK would replace the last one with
 * what is sent under another id. Undefined if the page ends with an edit that removed it.
 */
function namedIn(messageId: unknown, messages: readonly AiSdkMessage[]): AiSdkMessage | undefined {
  const [last] = messages.slice(-1)
  if (typeof messageId !== 'string') return last
  const sent = messages.find(({ id }) => id === messageId)
  const earlier: AiSdkMessage = { id: messageId, role: 'assistant', parts: [] }
  const asked = repliedTo(earlier)
  if (sent || asked === undefined) return sent ?? last
  // A page that sends its last message alone has the others as well.
  if (messages.length === 1 && asked !== last?.id) return earlier
  return last?.role === 'user' ? undefined : last
}

function placeOf(messages: readonly AiSdkMessage[], continued: AiSdkMessage | undefined): Place {
  const last = messages.at(-1)
  const isReplyLast = last?.role === 'assistant'
  const lastSaid = (of: readonly AiSdkMessage[]) => of.findLast(({ role }) => role === 'user')?.id
  const before = continued ? messages.slice(0, Math.max(0, messages.indexOf(continued))) : []
  // A page may send its last message alone.
  const asked = continued && (lastSaid(before) ?? repliedTo(continued))
  const said = lastSaid(messages) ?? (isReplyLast ? repliedTo(last) : undefined)
  const later = isReplyLast && last !== continued ? last : undefined
  return { asked, said, later, isReplyLast }
}

function replacing(
  { trigger, messageId }: Readonly<Record<string, unknown>>,
  last: AiSdkMessage,
  isNamedGone: boolean,
) {
  if (trigger === 'regenerate-message') return { replaces: 'regenerate' as const }
  return messageId === last.id || isNamedGone ? { replaces: 'edit' as const } : {}
}

/**
 * The request for an agent with threads: only what its stored conversation may lack. The SDK keeps the id of an edited message; the new
 * version that is stored gets an id of its own. The ids of the returned `place` are the stored ones.
 *
 * @throws CountersignError `approval-tampered` (409) if an answered call is not shown as it is stored: the user saw other arguments.
 */
export async function inputFor(
  { threads }: Agent,
  { input, continued, replaces, place }: ReadRequest,
  context: ChatOptions['context'],
): Promise<{ readonly input: RunAgentInput; readonly place: Place }> {
  if (threads === undefined) return { input, place }
  const { messages, threadId, resume = [] } = input
  const spoken = messages.findLastIndex(({ role }) => role === 'assistant')
  // A reply that broke off at once may have left no message.
  const isNew = ({ role }: Message, at: number) => role === 'user' && at > spoken && !place.isReplyLast
  const added = messages.filter((message, at) => message.role === 'tool' || isNew(message, at))
  if (replaces === undefined && continued === undefined && resume.length === 0)
    return { input: { ...input, messages: added }, place }
  const thread = await readThread(threads, { owner: context?.subject ?? null, threadId })
  const stored = thread?.messages ?? []
  if (resume.length > 0) checkShown(messages, stored)
  const last = messages.findLast(({ role }) => role === 'user')
  const versionOf = (of: Message | undefined) => of && stored.find((message) => isVersion(message, of.id))
  const isSame = (of: Message | undefined) => sameJson(versionOf(of)?.content, of?.content)
  // With another text, the page shows another version.
  const storedId = (id: string | undefined) => {
    const shown = messages.find((message) => message.id === id)
    return shown && isSame(shown) ? versionOf(shown)?.id : id
  }
  const said = storedId(place.said)
  const id = versionOf(last)?.id
  const hasNew = id === undefined && !place.isReplyLast
  const own = added.filter(({ role }) => role !== 'user')
  // The SDK repeats a failed request as if its message were edited. A page that does not show another page's edit can't regenerate its reply.
  const isOther = replaces === 'edit' ? isSame(last) : id !== last?.id && !isSame(last)
  if (!replaces || !last || id === undefined || isOther) {
    const asked = continued ? storedId(place.asked) : said
    // A stored version may have another id than the page's message.
    const news = id !== undefined && (replaces || isSame(last)) ? own : added
    return { input: { ...input, messages: news }, place: { ...place, asked, said, hasNew } }
  }
  const edited = replaces === 'edit' ? [...own, { ...last, id: randomId('msg_') }] : own
  const forwardedProps = { countersign: { [replaces]: id } }
  return { input: { ...input, messages: edited, forwardedProps }, place: { ...place, said, hasNew: true } }
}

function isVersion({ id, role, metadata }: Message, of: string): boolean {
  const { versions = [] } = getCountersignMetadata(metadata)
  return role === 'user' && (id === of || (Array.isArray(versions) && versions.includes(of)))
}

/** The agent does not get the calls of the page: it takes those that are stored. */
function checkShown(shown: readonly Message[], stored: readonly Message[]): void {
  const open = new Map(findUnansweredCalls(stored).map(({ call }) => [call.id, call]))
  for (const { call } of findUnansweredCalls(shown)) {
    const other = open.get(call.id)?.function
    const { name, arguments: input } = call.function
    if (!other || (other.name === name && sameJson(parseJson(other.arguments), parseJson(input)))) continue
    const message = `The call ${call.id} is stored with other arguments than this page shows. Load the conversation again.`
    throw new CountersignError('approval-tampered', message, { status: 409, toolCallId: call.id })
  }
}

function readMessage(value: unknown, index: number, limits: Arrival['limits']): AiSdkMessage {
  const at = `messages[${index}]`
  if (!isRecord(value) || !Array.isArray(value.parts)) throw invalid(`${at} must have parts.`)
  const { role, metadata } = value
  if (role !== 'system' && role !== 'user' && role !== 'assistant')
    throw invalid(`${at}.role must be system, user or assistant.`)
  const parts = value.parts.map((part, i) => readPart(part, `${at}.parts[${i}]`))
  return {
    id: checkId(`${at}.id`, value.id, limits),
    role,
    parts,
    ...(metadata !== undefined && { metadata }),
  }
}

const states = new Set([
  'input-streaming',
  'input-available',
  'approval-requested',
  'approval-responded',
  'output-available',
  'output-error',
  'output-denied',
])

/** Validates the types of the fields that are used; others are ignored. */
function readPart(value: unknown, at: string): AiSdkPart {
  if (!isRecord(value) || typeof value.type !== 'string') throw invalid(`${at} must have a type.`)
  const part = value as AiSdkPart
  const must = (field: string, holds: boolean) => {
    if (!holds) throw invalid(`${at}.${field} is malformed.`)
  }
  const isText = (field: string) => typeof value[field] === 'string'
  const isTextOrNone = (field: string) => value[field] === undefined || isText(field)
  if (part.type === 'text' || part.type === 'reasoning') must('text', isText('text'))
  if (part.type === 'file') {
    must('mediaType', isText('mediaType'))
    must('url', isText('url'))
  }
  if (part.type === 'source-url' || part.type === 'source-document') must('sourceId', isText('sourceId'))
  if (!isToolPart(part)) return part
  must('toolCallId', isText('toolCallId'))
  must('toolName', part.type !== 'dynamic-tool' || isText('toolName'))
  must('state', states.has(part.state))
  must('errorText', isTextOrNone('errorText'))
  must('approval', value.approval === undefined || isApproval(value.approval))
  return part
}

/** Answers are validated later, so that a malformed one is refused instead of the whole request. */
function isApproval(value: unknown): boolean {
  if (!isRecord(value) || typeof value.id !== 'string') return false
  return ['requestReason', 'signature'].every(
    (name) => value[name] === undefined || typeof value[name] === 'string',
  )
}
