import { CountersignError } from '@countersign/core'

/** Tool calls in one message. Requests with more in a message are refused, so a model's turn is cut off there. */
export const MAX_CALLS = 256

/** Data parts that one run may write. */
export const MAX_DATA_PARTS = 1024

/** Bytes of written parts that may be unread when a run writes another. */
export const MAX_UNREAD_PARTS = 1024 * 1024

/** Bytes of a request's body, and of one message on a socket. */
export const MAX_BODY_BYTES = 4 * 1024 * 1024

/** How much of one resource the callers of this process may hold at once. */
export interface Share {
  /** What one user (`context.subject`) may hold. */
  readonly perOwner?: number | undefined
  /** What all callers together may hold. Callers without a subject share half of it. */
  readonly total?: number | undefined
}

/**
 * What callers may hold in the memory of this process. Anything beyond it is refused, and nothing already accepted is dropped.
 * Everything served by one process is counted together, whichever agent serves it.
 */
export interface Limits {
  /** Open runs, and readers that rejoin runs. Default 64 per user, 2,000 in total. Beyond that: 429 `too-many-runs`. */
  readonly runs?: Share | undefined
  /**
   * Estimated bytes of the requests of open runs: two per character, and 64 per value. Default 64 MiB per user, 256 MiB
   * in total. Beyond that: 429 `too-many-runs`.
   */
  readonly runBytes?: Share | undefined
  /**
   * Bytes of request bodies and socket messages that are arriving or not processed yet; a message that was read counts as in
   * `runBytes`, an open socket as 16 KiB. Default 32 MiB per user, 128 MiB in total. Beyond that: 429 `too-many-requests`, on sockets
   * close code 1013.
   */
  readonly arrivingBytes?: Share | undefined
  /**
   * Milliseconds in which a request body or a socket message must arrive. Default 60,000. Beyond that: 408 `invalid-request`, on sockets
   * close code 1008.
   */
  readonly arrivalTime?: number | undefined
  /**
   * Bytes of one tool's result, as JSON in a request. Default 2 MiB: every later request of its conversation contains it, and a request
   * has at most 4 MiB. If it is larger, the call has run, and its result is an error with the code `result-too-large`. The message of a
   * failed tool is cut at a sixteenth of it.
   */
  readonly resultSize?: number | undefined
  /** Answers whose approval was not requested yet. Default 256 per user, 4,096 in total. Beyond that: `too-many-answers`. */
  readonly earlyAnswers?: Share | undefined
  /** Characters of those answers. Default 4 Mi per user, 32 Mi in total. Beyond that: `too-many-answers`. */
  readonly earlyAnswerSize?: Share | undefined
}

/** A {@link Share}, complete. */
export interface FullShare {
  readonly perOwner: number
  readonly total: number
}

/** {@link Limits}, validated and complete. */
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

/** @throws CountersignError `invalid-option` if a limit is not a positive number. */
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
    // The longest delay of a timer.
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

/** Answers in one request, for each way they arrive: entries of `resume`, decisions in the history, results of the approval tool. */
export const MAX_ANSWERS = 256

/** Calls without a result in one request's history. Each is looked up and closed, sent for approval again or left to the client. */
export const MAX_OPEN_CALLS = 1024
