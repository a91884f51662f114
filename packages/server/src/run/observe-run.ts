import type { AGUIEvent } from '@countersign/core'
import type { RunFinished } from '../observe/events.js'

/** The end of a run for the observer, from its last event. */
export function runFinished(last: AGUIEvent, duration: number): RunFinished {
  const end = { type: 'run-finished', duration } as const
  if (last.type === 'RUN_FINISHED') {
    const { outcome, usage = [], metadata } = last
    const { finishReason } = metadata ?? {}
    return {
      ...end,
      outcome: outcome?.type ?? 'success',
      finishReason: typeof finishReason === 'string' ? finishReason : undefined,
      usage,
    }
  }
  const { code, usage = [] }: Partial<Extract<AGUIEvent, { type: 'RUN_ERROR' }>> =
    last.type === 'RUN_ERROR' ? last : {}
  return code === 'aborted'
    ? { ...end, outcome: 'cancelled', finishReason: code, usage }
    : { ...end, outcome: 'error', code, usage }
}
