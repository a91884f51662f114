import { type AGUIEvent, CountersignError } from '@countersign/core'
import { jsonSize } from './channel.js'

/**
 * Bytes of an event that waits for its reader, at least about.
 *
 * @throws CountersignError `invalid-argument` if it can't be written as JSON: no transport could send it.
 */
export function eventSize(event: AGUIEvent): number {
  // Most events are deltas, and nothing else of theirs is long.
  if ('delta' in event && typeof event.delta === 'string') return jsonSize(event.delta)
  try {
    return jsonSize(JSON.stringify(event))
  } catch (error) {
    const why = error instanceof Error ? error.message.split('\n')[0] : 'unknown reason'
    throw new CountersignError('invalid-argument', `The event ${event.type} is no JSON: ${why}`, {}, error)
  }
}
