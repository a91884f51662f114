import { getCountersignMetadata, type Message } from '@countersign/core'
import type { StoredMessage } from '../threads/thread-store.js'

/**
 * Marks an incomplete reply, on the last message of its branch. A run stores its messages with the mark and removes it with its last change.
 * Whatever ends the run earlier leaves the mark, and a page that loads the thread says that the reply was cut off.
 */
export function isCutOff(message: Message | undefined): boolean {
  return getCountersignMetadata(message?.metadata).cut === true
}

/** Whether the model finished without saying anything to this user message. Any other user message that is last got no reply. */
export function isUnanswered(message: Message | undefined): boolean {
  return message?.role === 'user' && getCountersignMetadata(message.metadata).cut === false
}

/** With `isCut: false`, a user message that {@link isUnanswered}. */
export function marked(stored: StoredMessage, isCut: boolean): StoredMessage {
  const message: Message = JSON.parse(stored.message)
  const countersign = { ...getCountersignMetadata(message.metadata), cut: isCut }
  return {
    ...stored,
    message: JSON.stringify({ ...message, metadata: { ...message.metadata, countersign } }),
  }
}

/** The message as it is without the mark. */
export function withoutMark(message: Message): Message {
  if (!isCutOff(message) && !isUnanswered(message)) return message
  const { countersign: _, ...others } = message.metadata ?? {}
  const { cut: __, ...own } = getCountersignMetadata(message.metadata)
  const metadata = Object.keys(own).length > 0 ? { ...message.metadata, countersign: own } : others
  if (Object.keys(metadata).length > 0) return { ...message, metadata }
  const { metadata: ___, ...bare } = message
  return bare
}
