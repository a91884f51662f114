import type { Message } from '@countersign/core'
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

/** Where on its page a request goes on. The ids are those of the stored messages. */
export interface Place {
  /** The user message that the continued one answers. A page may send no more than its last message. */
  readonly asked: string | undefined
  /** The last user message. */
  readonly said: string | undefined
  /** The last message, if it is of the assistant, and another one than that. */
  readonly later: AiSdkMessage | undefined
}

/**
 * Whether a request goes on with another reply than the stored conversation: a new one would be shown in the wrong place. The SDK names the
 * message that was answered last, and another page may have gone on.
 */
export function leftBehind(
  continued: AiSdkMessage | undefined,
  { asked, said, later }: Place,
  stored: readonly Message[],
): LeftBehind | undefined {
  const from = stored.findLastIndex(({ role }) => role === 'user')
  const now = stored[from]
  if (now === undefined || (asked === undefined && (continued ?? said))) return undefined
  const calls = (continued?.parts ?? []).filter(isToolPart)
  const open = findUnansweredCalls(stored).map(({ call }) => call.id)
  const alive = new Set([...open, ...callsOf(stored.slice(from))])
  if (calls.some(({ toolCallId }) => alive.has(toolCallId))) return undefined
  // Another reply to the same message: what was said alone does not tell.
  const isOther = open.length > 0 && calls.some(({ state }) => state !== 'input-streaming')
  if (asked === now.id && !isOther) return undefined
  const known = new Set(callsOf(stored))
  const gone = calls.filter(
    ({ toolCallId, state }) => state === 'approval-responded' && !known.has(toolCallId),
  )
  return {
    continued,
    results: [...lackedBy(continued, undefined, stored), ...gone.map(({ toolCallId }) => endOf(toolCallId))],
    isUpToDate: said === now.id && lackedBy(later, said, stored).length === 0,
  }
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
