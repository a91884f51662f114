import type { Message } from '@countersign/core'
import { findUnansweredCalls } from '@countersign/server/http-kit'
import { type AiSdkMessage, isToolPart } from '../message.js'
import type { Purpose } from './purpose.js'
import type { ReadRequest } from './request.js'
import { lackedBy, replyId } from './thread.js'

/** A request that continues a reply which the stored conversation has moved past. Nothing may run for it. */
export interface LeftBehind {
  readonly continued: AiSdkMessage | undefined
  /** The id of the reply that the page shows instead, so that its next request is not taken for one that shows all. */
  readonly messageId: string
  /** How calls that are open on the page have ended. */
  readonly results: readonly Message[]
  /** Whether the page shows all that is stored, and nothing is left to do. */
  readonly isUpToDate: boolean
}

/**
 * Whether a request continues another reply than the last one that is stored. A new reply would then appear in the wrong place: the SDK names
 * the message whose request was answered last, and another page may have continued the conversation.
 */
export function leftBehind(
  purpose: Purpose,
  { continued, page: { later } }: ReadRequest,
  stored: readonly Message[],
): LeftBehind | undefined {
  if (purpose.kind !== 'go-on') return undefined
  const { asked, said } = purpose
  const from = stored.findLastIndex(({ role }) => role === 'user')
  const now = stored[from]
  if (now === undefined || (asked === undefined && (continued ?? said))) return undefined
  const calls = (continued?.parts ?? []).filter(isToolPart)
  const open = findUnansweredCalls(stored).map(({ call }) => call.id)
  const alive = new Set([...open, ...callsOf(stored.slice(from))])
  if (calls.some(({ toolCallId }) => alive.has(toolCallId))) return undefined
  // The page may show another reply to the same message: the user message alone does not tell them apart.
  const isOther = open.length > 0 && calls.some(({ state }) => state !== 'input-streaming')
  if (asked === now.id && !isOther) return undefined
  const known = new Set(callsOf(stored))
  const isReplied = stored.length > from + 1
  const gone = calls.filter(
    ({ toolCallId, state }) => state === 'approval-responded' && !known.has(toolCallId),
  )
  return {
    continued,
    messageId: replyId([{ id: said ?? '', role: 'user' }]),
    results: [...lackedBy(continued, undefined, stored), ...gone.map(({ toolCallId }) => endOf(toolCallId))],
    isUpToDate: said === now.id && isReplied && lackedBy(later, said, stored).length === 0,
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
