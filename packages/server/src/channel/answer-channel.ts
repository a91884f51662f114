import { CountersignError, type ResumeEntry } from '@countersign/core'
import { holderOfRun } from '../encoding/ids.js'
import { type AnswerContext, type Delivery, runEnded, tooManyAnswers } from './answer-queue.js'

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

/**
 * A channel whose failures are logged. A failure to close stops nothing, because the run has ended by then. An answer that can't be
 * delivered rejects with `ledger-unavailable`, and can be sent again.
 */
export function failSafeAnswerChannel(
  channel: AnswerChannel,
  warn: (message: string, error: unknown) => void,
): AnswerChannel {
  return {
    async open(runKey, receive) {
      try {
        const close = await channel.open(runKey, receive)
        return () =>
          close().catch((error: unknown) => warn('The answer channel of a run could not be closed.', error))
      } catch (error) {
        warn('The answer channel could not be opened; the run takes no live answers.', error)
        throw error
      }
    },
    async deliver(runKey, entries, context) {
      try {
        return await channel.deliver(runKey, entries, context)
      } catch (error) {
        warn('The answer channel could not be reached; an answer was not delivered.', error)
        const message = 'Answers cannot be taken at the moment; send it again.'
        throw new CountersignError('ledger-unavailable', message, { status: 503 }, error)
      }
    },
  }
}

/** Receives answers from another process; the result is sent back. */
export async function received(
  receive: Receive,
  entries: readonly ResumeEntry[],
  context: AnswerContext,
): Promise<Delivery> {
  try {
    return await receive(entries, context)
  } catch {
    return runEnded
  }
}

/** How many deliveries of one user a process sends to other processes at once. */
const PER_HOLDER = 32

/** Sends deliveries to other processes: so few of each user at once that nobody's answers wait behind those of another. */
export function fairDeliveries(): (runKey: string, send: () => Promise<Delivery>) => Promise<Delivery> {
  const sending = new Map<string, number>()
  return async (runKey, send) => {
    const holder = holderOfRun(runKey)
    const others = sending.get(holder) ?? 0
    if (others >= PER_HOLDER) return tooManyAnswers
    sending.set(holder, others + 1)
    try {
      return await send()
    } finally {
      const left = (sending.get(holder) ?? 1) - 1
      if (left === 0) sending.delete(holder)
      else sending.set(holder, left)
    }
  }
}

/** Maximum JSON characters of one transferred context member. */
const MAX_MEMBER = 16 * 1024

/** The members of a context that can be transferred. The application's services, such as a database, can't. */
export function plainMembers(context: AnswerContext): AnswerContext {
  return Object.fromEntries(Object.entries(context).filter(([, value]) => isPlain(value)))
}

function isPlain(value: unknown): boolean {
  if (typeof value === 'function' || typeof value === 'symbol' || typeof value === 'bigint') return false
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    const prototype: unknown = Object.getPrototypeOf(value)
    if (prototype !== Object.prototype && prototype !== null) return false
  }
  try {
    return (JSON.stringify(value)?.length ?? MAX_MEMBER + 1) <= MAX_MEMBER
  } catch {
    return false
  }
}
