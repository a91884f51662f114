import type { ResumeEntry } from '@countersign/core'
import { MAX_DELAY } from '../encoding/check-options.js'
import { onAbort } from '../encoding/signals.js'
import type { AnswerContext, AnswerSource } from './answer-queue.js'

/** How the wait for one answer ended. */
export type Arrival =
  | { readonly kind: 'answer'; readonly entry: ResumeEntry; readonly context: AnswerContext }
  | { readonly kind: 'expired' | 'closed' | 'stopped' }

export interface Waiting {
  /** Aborted when nobody may wait any longer. */
  readonly waitSignal: AbortSignal
  /** Milliseconds since the epoch. */
  readonly expiresAt?: number | undefined
  readonly now: () => number
}

export function nextArrival(
  answers: AnswerSource,
  id: string,
  { waitSignal, expiresAt, now }: Waiting,
): Promise<Arrival> {
  return new Promise((resolve) => {
    let leave = () => {}
    let unwatch = () => {}
    let arrived = false
    let timer: ReturnType<typeof setTimeout> | undefined
    const arrive = (arrival: Arrival) => {
      arrived = true
      clearTimeout(timer)
      unwatch()
      leave()
      resolve(arrival)
    }
    const onStop = () => arrive({ kind: 'stopped' })
    const watch = (end: number) => {
      const left = end - now()
      if (left <= 0) arrive({ kind: 'expired' })
      else timer = setTimeout(watch, Math.min(left, MAX_DELAY), end)
    }
    if (waitSignal.aborted) return onStop()
    if (expiresAt !== undefined) watch(expiresAt)
    // An expired request must not take an answer: it would be lost.
    if (arrived) return
    unwatch = onAbort(waitSignal, onStop)
    leave = answers.take(id, (entry, context = {}) =>
      arrive(entry === undefined ? { kind: 'closed' } : { kind: 'answer', entry, context }),
    )
    if (arrived) leave()
  })
}
