import { CountersignError, isRecord } from '@countersign/core'
import type {
  PromptMessage,
  ToolApprovalRequestPart,
  ToolApprovalResponsePart,
  ToolPromptMessage,
} from './parts.js'
import type { ResponsePart, StreamPart } from './stream.js'

/*
 * Checks of what was stored or came from elsewhere. What passes is the value itself, so that members nobody here knows survive.
 */

/** @throws CountersignError `invalid-argument`, naming the member and what it must be. */
export function parseApprovalRequest(value: unknown): ToolApprovalRequestPart {
  checkPart(value, 'part', ['tool-approval-request'])
  return value as ToolApprovalRequestPart
}

/** @throws CountersignError `invalid-argument`, naming the member and what it must be. */
export function parseApprovalResponse(value: unknown): ToolApprovalResponsePart {
  checkPart(value, 'part', ['tool-approval-response'])
  return value as ToolApprovalResponsePart
}

/** A whole part of a run's response. @throws CountersignError `invalid-argument`. */
export function parseResponsePart(value: unknown): ResponsePart {
  checkPart(value, 'part', [...assistantParts, 'tool-result'])
  return value as ResponsePart
}

/** A part of a run's streamed response. @throws CountersignError `invalid-argument`. */
export function parseStreamPart(value: unknown): StreamPart {
  checkPart(value, 'part', streamParts)
  return value as StreamPart
}

/** A tool message: results and answers in any order. @throws CountersignError `invalid-argument`. */
export function parseToolMessage(value: unknown): ToolPromptMessage {
  checkMessage(value, 'message', ['tool'])
  return value as ToolPromptMessage
}

/** A message of any role. @throws CountersignError `invalid-argument`. */
export function parsePromptMessage(value: unknown): PromptMessage {
  checkMessage(value, 'message', ['user', 'system', 'assistant', 'tool'])
  return value as PromptMessage
}

/** A whole prompt. @throws CountersignError `invalid-argument`. */
export function parsePromptMessages(value: unknown): readonly PromptMessage[] {
  if (!Array.isArray(value)) throw invalid('messages', 'an array of messages')
  for (const [index, message] of value.entries())
    checkMessage(message, `messages[${index}]`, ['user', 'system', 'assistant', 'tool'])
  return value
}

/** What a member must be, as text and as a check. */
type Rule = readonly [words: string, holds: (value: unknown) => boolean]

const text: Rule = ['text', (value) => typeof value === 'string']
const id: Rule = ['a non-empty text', (value) => typeof value === 'string' && value !== '']
const flag: Rule = ['true or false', (value) => typeof value === 'boolean']
const record: Rule = ['an object', isRecord]
const given: Rule = ['given', (value) => value !== undefined]
const anything: Rule = ['anything', () => true]
const time: Rule = ['milliseconds since the epoch', (value) => typeof value === 'number']
const scope: Rule = ['"once" or "session"', (value) => value === 'once' || value === 'session']
const media: Rule = [
  '"image", "audio", "video" or "document"',
  (value) => value === 'image' || value === 'audio' || value === 'video' || value === 'document',
]
const content: Rule = ['text or an array', (value) => typeof value === 'string' || Array.isArray(value)]
const optional = ([words, holds]: Rule): Rule => [
  `${words}, or left out`,
  (value) => value === undefined || holds(value),
]
const metadata = { metadata: optional(record) }

/** The members of each part. */
const partRules = new Map<string, Readonly<Record<string, Rule>>>(
  Object.entries({
    text: { text },
    file: { media, source: record, ...metadata },
    source: { id: text, url: optional(text), title: optional(text), ...metadata },
    data: { name: text, data: anything },
    reasoning: { id: text, text, encryptedValue: optional(text), ...metadata },
    'tool-call': { id: text, name: text, arguments: text, providerExecuted: optional(flag), ...metadata },
    'tool-approval-request': { approvalId: id, toolCallId: text, metadata: anything },
    'tool-approval-response': {
      approvalId: id,
      approved: flag,
      reason: optional(text),
      scope: optional(scope),
      providerExecuted: optional(flag),
      options: optional(record),
    },
    'tool-result': {
      toolCallId: text,
      name: text,
      isFailure: flag,
      result: given,
      preliminary: optional(flag),
      messageId: optional(text),
      content: optional(content),
      error: optional(text),
      ...metadata,
    },
    'text-delta': { messageId: text, delta: text },
    'reasoning-delta': { id: text, delta: text },
    finish: { reason: optional(text) },
  }),
)

const plainParts = ['text', 'file', 'source', 'data']
const assistantParts = [...plainParts, 'reasoning', 'tool-call', 'tool-approval-request']
const streamParts = [
  'text-delta',
  'reasoning-delta',
  'source',
  'tool-call',
  'tool-approval-request',
  'tool-result',
  'finish',
]
const partsOf = new Map([
  ['user', plainParts],
  ['system', plainParts],
  ['assistant', assistantParts],
  ['tool', ['tool-result', 'tool-approval-response']],
])
const messageRules = { id: text, createdAt: optional(time), ...metadata }

function checkMessage(value: unknown, path: string, roles: readonly string[]): void {
  if (!isRecord(value)) throw invalid(path, 'an object')
  const { role, content: parts } = value
  const allowed = typeof role === 'string' && roles.includes(role) ? partsOf.get(role) : undefined
  if (allowed === undefined) throw invalid(`${path}.role`, oneOfWords(roles))
  if (role !== 'tool') checkMembers(value, path, messageRules)
  if (!Array.isArray(parts)) throw invalid(`${path}.content`, 'an array of parts')
  for (const [index, part] of parts.entries()) checkPart(part, `${path}.content[${index}]`, allowed)
}

function checkPart(value: unknown, path: string, allowed: readonly string[]): void {
  if (!isRecord(value)) throw invalid(path, 'an object')
  const { type } = value
  const rules = typeof type === 'string' && allowed.includes(type) ? partRules.get(type) : undefined
  if (rules === undefined) throw invalid(`${path}.type`, oneOfWords(allowed))
  checkMembers(value, path, rules)
}

function checkMembers(
  value: Readonly<Record<string, unknown>>,
  path: string,
  rules: Readonly<Record<string, Rule>>,
): void {
  for (const [name, [words, holds]] of Object.entries(rules)) {
    const member = Object.hasOwn(value, name) ? value[name] : undefined
    if (!holds(member)) throw invalid(`${path}.${name}`, words)
  }
}

function oneOfWords(words: readonly string[]): string {
  return `one of ${words.map((word) => JSON.stringify(word)).join(', ')}`
}

function invalid(path: string, expected: string): CountersignError {
  const message = `${path} must be ${expected}: build parts with the constructors of @countersign/server/prompt.`
  return new CountersignError('invalid-argument', message, { path, expected })
}
