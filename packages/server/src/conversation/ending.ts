import type { AGUIEvent } from '@countersign/core'

/** The reason of a signal by which a user stops their run. Any other means that nobody reads it. */
export const stoppedByUser = new DOMException('The user stopped the run.', 'AbortError')

/**
 * How a run ended. `stopped`: by its user, for whom the reply is then as complete as they want it. `paused`: its request allowed no further call
 * of the model. `failed`: also one that was stopped because nobody was reading it.
 */
export type RunEnding = 'finished' | 'paused' | 'stopped' | 'failed'

/** The ending that an event tells of; undefined for one in the middle. */
export function endingOf(event: AGUIEvent): RunEnding | undefined {
  if (event.type === 'RUN_ERROR') return event.code === 'aborted' ? 'stopped' : 'failed'
  if (event.type !== 'RUN_FINISHED') return undefined
  const { finishReason } = event.metadata ?? {}
  if (event.outcome?.type === 'cancelled') return finishReason === 'disconnected' ? 'failed' : 'stopped'
  return finishReason === 'max_steps' ? 'paused' : 'finished'
}
