import { CountersignError, isRecord, type ThreadRecord, type UIMessage } from '@countersign/core'
import type { Connection } from '../connections/connection.js'

/** Where what a run wrote begins: in which message, behind which of its parts. */
export type End = NonNullable<ThreadRecord['openRunFrom']>

/** How many parts the message at this place had before the run. */
export function partsBefore([messages, parts]: End, at: number): number {
  if (at >= messages) return 0
  return at === messages - 1 ? parts : Number.POSITIVE_INFINITY
}

/**
 * A connection that reads a run from its first event. `known`: there is such a run. Its events replace what is shown of it, from which `begin`
 * removes that first. They are held back until they bring as much as is `shown`: a stream that breaks before takes nothing away.
 */
export function replaying(
  connection: Connection,
  known: () => void,
  shown: () => number,
  begin: () => void,
): Connection {
  return {
    ...connection,
    async *rejoin(cursor, options) {
      let held: unknown[] | undefined = cursor.lastEventId === undefined ? [] : undefined
      // Read again from the first event, what is held back now is not lost.
      const onEventId = (id: string) => held ?? options.onEventId?.(id)
      let missing = shown()
      for await (const batch of connection.rejoin?.(cursor, { ...options, onEventId }) ?? []) {
        const events: readonly unknown[] = Array.isArray(batch) ? batch : [batch]
        if (!held || events.length === 0) yield batch
        else {
          known()
          held.push(...events)
          missing -= events.reduce<number>((sum, event) => sum + sizeOfEvent(event), 0)
          if (missing > 0) continue
          if (!options.signal.aborted) begin()
          const all = held
          held = undefined
          yield all
        }
      }
      if (held && held.length > 0)
        throw new CountersignError(
          'truncated-stream',
          'The stream ended before it had brought what is shown.',
        )
    },
  }
}

/** How much a run has written: its texts, and one for each call. */
export function sizeOfParts(messages: readonly UIMessage[], from: End): number {
  const parts = messages.flatMap((message, at) => message.parts.slice(partsBefore(from, at)))
  return parts.reduce((sum, part) => {
    if (part.type === 'text' || part.type === 'reasoning') return sum + part.text.length
    return part.type === 'tool-call' ? sum + 1 : sum
  }, 0)
}

/** How much of that an event brings. One that may ask the user something, or ends the run, is never held back. */
function sizeOfEvent(event: unknown): number {
  if (!isRecord(event)) return 0
  const { type, delta } = event
  if (type === 'TOOL_CALL_START' || type === 'TOOL_CALL_CHUNK') return 1
  if (/^(RUN_FINISHED|RUN_ERROR|MESSAGES_SNAPSHOT|CUSTOM)$/.test(String(type)))
    return Number.POSITIVE_INFINITY
  return typeof delta === 'string' && type !== 'TOOL_CALL_ARGS' ? delta.length : 0
}
