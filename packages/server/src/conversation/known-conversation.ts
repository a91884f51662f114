import type { Message } from '@countersign/core'
import type { KnownThread } from '../threads/known-threads.js'
import { readPage } from './continued-branch.js'
import type { ThreadRequest } from './request-plan.js'

/**
 * Whether the conversation of a request is `known`: it is stored, or begins with this request. If it is not stored, the page may bring its
 * copy of it, an `upload`. Else the request must be refused: the model would get what the user has said without what was done about it.
 */
export function knownAs(
  thread: Pick<KnownThread, 'byId'> | undefined,
  { messages, forwardedProps, resume = [] }: ThreadRequest,
  acceptUploads: boolean,
): 'known' | 'upload' | 'unknown' {
  const { after, replied, isUpload } = readPage(forwardedProps)
  const mayUpload = thread === undefined && acceptUploads
  if (isUpload && mayUpload) return 'upload'
  const named = after ?? replied
  const asked = named ?? repliedIn(messages)
  if (asked !== undefined) {
    if (thread?.byId.has(asked)) return 'known'
    // A page that names its last known message sends only what is behind it.
    return mayUpload && named === undefined ? 'upload' : 'unknown'
  }
  // A text before the first user message may be the page's own greeting. Calls, results and answers are of a conversation.
  const isLater = resume.length > 0 || messages.some(isWork)
  return isLater && thread === undefined ? 'unknown' : 'known'
}

/** Whether a page sends only what is new, and nothing has added what was said before. */
export function lacksHistory({ messages, forwardedProps }: ThreadRequest): boolean {
  const { after } = readPage(forwardedProps)
  return after !== undefined && !messages.some(({ id }) => id === after)
}

/** The last user message of a page's history to which it shows a reply. */
function repliedIn(messages: readonly Message[]): string | undefined {
  const last = messages.findLastIndex(({ role }) => role === 'assistant' || role === 'tool')
  return messages.slice(0, last + 1).findLast(({ role }) => role === 'user')?.id
}

function isWork(message: Message): boolean {
  return message.role === 'tool' || (message.role === 'assistant' && (message.toolCalls ?? []).length > 0)
}
