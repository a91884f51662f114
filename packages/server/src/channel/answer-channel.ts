import type { ResumeEntry } from '@countersign/core'
import { type AnswerContext, type Delivery, runEnded } from './answer-queue.js'

/** Takes what was delivered for a run, with the context of whoever answers. */
export type Receive = (entries: readonly ResumeEntry[], context?: AnswerContext) => Promise<Delivery>

/**
 * Brings answers to the run that waits for them. The request that carries an answer and the run need not be in one process: what is
 * asked here can be done by messages with a reply.
 */
export interface AnswerChannel {
  /**
   * From now on `receive` gets what is delivered for the run, until the function that comes back was called. A later one of the same
   * key takes its place.
   */
  open(runKey: string, receive: Receive): Promise<() => Promise<void>>
  /**
   * Resolves once the run has said what becomes of the answers; `refused` with `run-ended` where no such run is open. `context` is that of
   * the request that brought them, for `approvals.confirm`: a channel between processes carries what of it is plain data.
   */
  deliver(runKey: string, entries: readonly ResumeEntry[], context?: AnswerContext): Promise<Delivery>
}

/** Runs and answers of one process. Holds nothing but the runs that are open. */
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

/** The one of this process, for agents that were given none. */
export function defaultAnswerChannel(): AnswerChannel {
  shared ??= memoryAnswerChannel()
  return shared
}
