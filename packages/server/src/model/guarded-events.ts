import type { CountersignError } from '@countersign/core'
import type { ModelEvent } from './model.js'
import { truncatedStream } from './model-error.js'

/**
 * The events of an adapter's answer as `Model.stream` promises them: nothing comes after an abort, which is no error; what the SDK
 * throws becomes a typed error; an answer that ends without `finish` is one.
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
