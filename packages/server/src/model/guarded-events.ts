import type { CountersignError } from '@countersign/core'
import type { ModelEvent } from './model.js'
import { truncatedStream } from './model-error.js'

/**
 * Makes an adapter's events follow the contract of `Model.stream`: nothing comes after an abort, which is no error; errors of the SDK
 * become typed errors; a response that ends without `finish` is an error.
 *
 * @throws CountersignError `model-failed`
 */
export async function* guardedEvents(
  provider: string,
  signal: AbortSignal,
  events: AsyncIterable<ModelEvent>,
  toError: (thrown: unknown) => CountersignError,
): AsyncGenerator<ModelEvent> {
  let finished = false
  try {
    for await (const event of events) {
      if (signal.aborted) return
      finished ||= event.type === 'finish'
      yield event
    }
  } catch (error) {
    if (signal.aborted) return
    throw toError(error)
  }
  if (!finished && !signal.aborted) throw truncatedStream(provider)
}
