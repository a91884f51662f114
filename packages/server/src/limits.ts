import { CountersignError } from '@countersign/core'

/** Tool calls in one message. A request with a message of more is refused, so a turn of the model is cut off there. */
export const MAX_CALLS = 256

/** Bytes of a request's body, and of one message of a socket. */
export const MAX_BODY_BYTES = 4 * 1024 * 1024

/** How much of one resource the callers of this process may hold at once. */
export interface Share {
  /** What one person (`context.subject`) may hold. */
  readonly perOwner?: number | undefined
  /** What everybody together may hold. Callers without a subject together get half of it. */
  readonly total?: number | undefined
}

/**
 * What callers may hold in the memory of this process. What is beyond it is refused, and nothing that was taken is dropped. Everything
 * served by one process is counted together, whichever agent serves it.
 */
export interface Limits {
  /** Runs that are open, and readers that take runs up. Default 64 for a person, 2,000 in all. Beyond it: 429 `too-many-runs`. */
  readonly runs?: Share | undefined
  /**
   * Bytes that the requests of open runs hold, as estimated: two for a character, and 64 for a value. Default 64 MiB for a person, 256 MiB
   * in all. Beyond it: 429 `too-many-runs`.
   */
  readonly runBytes?: Share | undefined
  /**
   * Bytes of request bodies and socket messages that arrive or that nothing was done with yet; a message that was read counts as in
   * `runBytes`, an open socket as 16 KiB. Default 32 MiB for a person, 128 MiB in all. Beyond it: 429 `too-many-requests`, on sockets
   * close code 1013.
   */
  readonly arrivingBytes?: Share | undefined
  /**
   * Milliseconds in which a request body or a socket message must arrive. Default 60,000. Beyond it: 408 `invalid-request`, on sockets
   * close code 1008.
   */
  readonly arrivalTime?: number | undefined
  /**
   * Bytes of one tool's result, as the JSON of a request has it. Default 2 MiB: it has to go with every later request of its conversation,
   * and a request has 4 MiB. Beyond it the call has run and its result is an error with the code `result-too-large`. What a failed tool says
   * is cut at a sixteenth of it.
   */
  readonly resultSize?: number | undefined
  /** Answers that wait for a question not asked yet. Default 256 for a person, 4,096 in all. Beyond it: `too-many-answers`. */
  readonly earlyAnswers?: Share | undefined
  /** Characters of those answers. Default 4 Mi for a person, 32 Mi in all. Beyond it: `too-many-answers`. */
  readonly earlyAnswerSize?: Share | undefined
}

/** A {@link Share}, complete. */
export interface FullShare {
  readonly perOwner: number
  readonly total: number
}

/** {@link Limits}, checked and complete. */
export type FullLimits = Readonly<Record<ShareName, FullShare>> & {
  readonly arrivalTime: number
  readonly resultSize: number
}

type ShareName = Exclude<keyof Limits, 'arrivalTime' | 'resultSize'>

const MIB = 1024 * 1024

export const DEFAULT_LIMITS: FullLimits = {
  runs: { perOwner: 64, total: 2000 },
  runBytes: { perOwner: 64 * MIB, total: 256 * MIB },
  arrivingBytes: { perOwner: 32 * MIB, total: 128 * MIB },
  arrivalTime: 60_000,
  resultSize: 2 * MIB,
  earlyAnswers: { perOwner: 256, total: 4096 },
  earlyAnswerSize: { perOwner: 4 * MIB, total: 32 * MIB },
}

/** @throws CountersignError `invalid-option` where a limit is not a positive number. */
export function readLimits(given: Limits = {}): FullLimits {
  const share = (name: ShareName): FullShare => {
    const { perOwner, total } = DEFAULT_LIMITS[name]
    return {
      perOwner: positive(`limits.${name}.perOwner`, given[name]?.perOwner ?? perOwner),
      total: positive(`limits.${name}.total`, given[name]?.total ?? total),
    }
  }
  return {
    runs: share('runs'),
    runBytes: share('runBytes'),
    arrivingBytes: share('arrivingBytes'),
    // timers take no longer delay
    arrivalTime: Math.min(
      positive('limits.arrivalTime', given.arrivalTime ?? DEFAULT_LIMITS.arrivalTime),
      2 ** 31 - 1,
    ),
    resultSize: positive('limits.resultSize', given.resultSize ?? DEFAULT_LIMITS.resultSize),
    earlyAnswers: share('earlyAnswers'),
    earlyAnswerSize: share('earlyAnswerSize'),
  }
}

function positive(option: string, value: number): number {
  if (typeof value === 'number' && value > 0) return value
  throw new CountersignError('invalid-option', `${option} must be a positive number, not ${value}.`, {
    option,
    value,
  })
}

/** Answers in one request, by each door: entries of `resume`, decisions in the history, results of the approval tool. */
export const MAX_ANSWERS = 256

/** Calls of one request's history that have no result. Each is looked up and closed, asked again or left to the client. */
export const MAX_OPEN_CALLS = 1024
