import { getCountersignMetadata, type Message, sameJson } from '@countersign/core'
import { findUnansweredCalls } from '@countersign/server/http-kit'
import { type AiSdkMessage, isToolPart } from '../message.js'
import { lackedBy } from './thread.js'

/** A page's request that goes on with a reply that the stored conversation has left behind: nothing may run for it. */
export interface LeftBehind {
  readonly continued: AiSdkMessage | undefined
  /** How calls that are open on the page have ended. */
  readonly results: readonly Message[]
  /** Whether the page shows all that is stored, and nothing is left to do. */
  readonly isUpToDate: boolean
}

/** Where on its page a request goes on. */
export interface Place {
  /** The id of the user message that this one answers. A page may send no more than its last message. */
  readonly asked: string | undefined
  /** The last message, if it is another one of the assistant. */
  readonly later: AiSdkMessage | undefined
  readonly isReplyLast: boolean
}

/**
 * Whether a request goes on with another reply than the stored conversation: a new one would be shown in the wrong place. The SDK names the
 * message that was answered last, and another page may have gone on. `shown`: what the page shows, as it would be stored.
 */
export function leftBehind(
  continued: AiSdkMessage | undefined,
  { asked, later }: Place,
  shown: readonly Message[],
  stored: readonly Message[],
): LeftBehind | undefined {
  const from = stored.findLastIndex(({ role }) => role === 'user')
  const now = stored[from]
  if (now === undefined || (asked === undefined && shown.length > 0)) return undefined
  const last = shown.findLast(({ role }) => role === 'user')
  const calls = (continued?.parts ?? []).filter(isToolPart)
  const open = findUnansweredCalls(stored).map(({ call }) => call.id)
  const alive = new Set([...open, ...callsOf(stored.slice(from))])
  if (calls.some(({ toolCallId }) => alive.has(toolCallId))) return undefined
  // Another reply to the same message: what was said alone does not tell.
  const isOther = open.length > 0 && calls.some(({ state }) => state !== 'input-streaming')
  const answered = shown.find(({ id }) => id === asked)
  if (isShown(now, answered) && !isOther) return undefined
  const known = new Set(callsOf(stored))
  const gone = calls.filter(
    ({ toolCallId, state }) => state === 'approval-responded' && !known.has(toolCallId),
  )
  return {
    continued,
    results: [...lackedBy(continued, undefined, stored), ...gone.map(({ toolCallId }) => endOf(toolCallId))],
    isUpToDate: isShown(now, last) && lackedBy(later, now.id, stored).length === 0,
  }
}

/** Whether a stored message of the user is a version of the one with that id. */
export function isVersion({ id, role, metadata }: Message, of: string | undefined): boolean {
  const { versions = [] } = getCountersignMetadata(metadata)
  return role === 'user' && (id === of || (Array.isArray(versions) && versions.includes(of)))
}

/** With another text, the page shows another version. */
function isShown(now: Message, shown: Message | undefined): boolean {
  if (!isVersion(now, shown?.id)) return false
  return now.id === shown?.id || sameJson(now.content, shown?.content)
}

function callsOf(messages: readonly Message[]): string[] {
  return messages.flatMap((message) =>
    message.role === 'assistant' ? (message.toolCalls ?? []).map(({ id }) => id) : [],
  )
}

function endOf(toolCallId: string): Message {
  const content = JSON.stringify({ reason: 'This conversation holds no call that the answer is for.' })
  const metadata = { countersign: { outcome: 'cancelled' } }
  return { id: `${toolCallId}/gone`, role: 'tool', toolCallId, content, metadata }
}
