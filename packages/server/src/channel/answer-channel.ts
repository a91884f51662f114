import type { ResumeEntry } from '@countersign/core'
import { type AnswerContext, type Delivery, runEnded } from './answer-queue.js'

/** Takes answers delivered for a run, with the context of whoever answers. */
export type Receive = (entries: readonly ResumeEntry[], context?: AnswerContext) => Promise<Delivery>

/**
 * Delivers answers to the run that waits for them. The request that carries an answer and the run may be in different processes:
 * messages with a reply are enough to implement this.
 */
export interface AnswerChannel {
  /**
   * From now on, `receive` gets what is delivered for the run, until the returned function is called. A later call with the same
   * key replaces it.
   */
  open(runKey: string, receive: Receive): Promise<() => Promise<void>>
  /**
   * Resolves once the run has accepted or refused the answers; `refused` with `run-ended` if no such run is open. `context` is that of
   * the request that brought them, for `approvals.confirm`: between processes, only its plain data is transferred.
   */
  deliver(runKey: string, entries: readonly ResumeEntry[], context?: AnswerContext): Promise<Delivery>
}

/** A channel within one process. Holds nothing but the open runs. */
export function memoryAnswerChannel(): AnswerChannel {
  const runs = new Map<string, Receive>()
  return {
    async open(runKey, receive) {
      runs.set(runKey, receive)
      return async () => {
        if (runs.get(runKey) === receive) runs.delete(runKey)
      }
    },
    async deliver(runKey, entries, context) {
      return runs.get(runKey)?.(entries, context) ?? runEnded
    },
  }
}

let shared: AnswerChannel | undefined

/** The channel of this process, for agents that were given none. */
export function defaultAnswerChannel(): AnswerChannel {
  shared ??= memoryAnswerChannel()
  return shared
}
