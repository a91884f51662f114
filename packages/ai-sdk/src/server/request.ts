import { isRecord, PROTOCOL_VERSION, type RunAgentInput } from '@countersign/core'
import {
  type Arrival,
  checkId,
  checkRequest,
  invalid,
  parseBody,
  randomId,
  readParsedInput,
  readText,
  unknownCaller,
} from '@countersign/server/http-kit'
import { type AiSdkMessage, type AiSdkPart, isToolPart } from '../message.js'
import { answersOf, historyOf } from './history.js'
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

/** What only our route needs to know. */
export interface ReadRequest extends AiSdkRequest {
  readonly page: Page
}

/** What a page shows. The ids are its own: a stored version may have another one. */
interface Page {
  /** The id of the user message that the continued reply answers. */
  readonly asked: string | undefined
  /** The id of the last user message. */
  readonly said: string | undefined
  /** The last message, if it is a reply other than the continued one. */
  readonly later: AiSdkMessage | undefined
  readonly isReplyLast: boolean
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
    page: pageOf(messages, continued),
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

function pageOf(messages: readonly AiSdkMessage[], continued: AiSdkMessage | undefined): Page {
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
