import { CountersignError, omitUndefined } from '@countersign/core'
import {
  group,
  MAX_DELAY,
  positiveNumber,
  type Rules,
  wholeFrom,
  wholeNumber,
} from './encoding/check-options.js'

/** Data parts that one run may write. */
export const MAX_DATA_PARTS = 1024

/** Bytes of written parts that may be unread when a run writes another. */
export const MAX_UNREAD_PARTS = 1024 * 1024

/** How much of one resource the callers of this process may hold at once. */
export interface Share {
  /** What one user (`context.subject`) may hold. */
  readonly perOwner?: number | undefined
  /** What all callers together may hold. Callers without a subject share half of it. */
  readonly total?: number | undefined
}

/**
 * How large a request may be, and what callers may hold in the memory of this process. Anything beyond it is refused, and nothing already
 * accepted is dropped. Everything served by one process is counted together, whichever agent serves it.
 */
export interface Limits {
  /** Bytes of a request's body, and of one message on a socket. Default 4 MiB. Beyond that: 413 `request-too-large`. */
  readonly bodyBytes?: number | undefined
  /** Messages of one request. Default 20,000. Beyond that: 413 `request-too-large`. */
  readonly messages?: number | undefined
  /** Tool calls in one message. Default 256. Beyond that: 413 `request-too-large`; a model's turn is cut off there. */
  readonly callsPerMessage?: number | undefined
  /**
   * Answers in one request, for each way they arrive: entries of `resume`, decisions in the history, results of the approval tool.
   * Default 256. Beyond that: 413 `request-too-large`.
   */
  readonly answers?: number | undefined
  /**
   * Calls without a result in one request's history. Each is looked up and closed, sent for approval again or left to the client.
   * Default 1,024. Beyond that: 413 `request-too-large`.
   */
  readonly openCalls?: number | undefined
  /** Levels of the JSON in a request. Default 64, at most 1,000. Beyond that: 400 `invalid-request`. */
  readonly depth?: number | undefined
  /** UTF-16 units of an id in a request. Default 256, and at least that. Beyond that: 400 `invalid-request`; `invalid-argument` of `agent.run`. */
  readonly idLength?: number | undefined
  /** Open runs, and readers that rejoin runs. Default 64 per user, 2,000 in total. Beyond that: 429 `too-many-runs`. */
  readonly runs?: Share | undefined
  /**
   * Estimated bytes of the requests of open runs, the stored conversations they continue, and twice what their tools return: two per
   * character, and 64 per value. Default 64 MiB per user, 256 MiB in total. A user's long replies count apart, within the same total.
   * Beyond that: 429 `too-many-runs`, which also ends a run whose tool has returned too much; a user's only run always fits. The results of
   * one run, from the second on, take at most one user's share.
   */
  readonly runBytes?: Share | undefined
  /**
   * Bytes of request bodies and socket messages that are arriving or not processed yet, and of what waits unread in sockets; a message that
   * was read counts as in `runBytes`, an open socket as 16 KiB, a frame that waits as 512 bytes more than it has. Default 32 MiB per user, 128 MiB in total. Beyond that: 429 `too-many-requests`, on sockets
   * close code 1013.
   */
  readonly arrivingBytes?: Share | undefined
  /**
   * Milliseconds in which a request body or a socket message must arrive. Default 60,000. Beyond that: 408 `invalid-request`, on sockets
   * close code 1008.
   */
  readonly arrivalTime?: number | undefined
  /**
   * Bytes of one tool's result, as JSON in a request. Default 2 MiB, or half of the `maxMessageBytes` of the agent's threads if that is less:
   * every later request of its conversation contains it, and a request has at most 4 MiB. If it is larger, the call has run, and its
   * result is an error with the code `result-too-large`. The message of a failed tool is cut at a sixteenth of it.
   */
  readonly resultSize?: number | undefined
  /**
   * Estimated bytes of conversations that one thread store keeps in memory after their requests, two per character of JSON. The next request
   * then loads and parses only what was stored since. The least recently used are dropped first; a larger one is not kept. 0 keeps none.
   * Default 128 MiB.
   */
  readonly cachedThreadBytes?: number | undefined
  /** Answers whose approval was not requested yet. Default 256 per user, 4,096 in total. Beyond that: `too-many-answers`. */
  readonly earlyAnswers?: Share | undefined
  /** Characters of those answers. Default 4 Mi per user, 32 Mi in total. Beyond that: `too-many-answers`. */
  readonly earlyAnswerSize?: Share | undefined
  /**
   * Bytes of a run's events that wait for their reader (two per UTF-16 unit, and 256 for each event). Beyond that, the run waits. Default
   * 65,536.
   */
  readonly unreadBytes?: number | undefined
  /** The same for reports of `progress()`, which do not wait. Default 1 MiB. Beyond that, the run ends with `reader-too-slow`. */
  readonly reportedBytes?: number | undefined
  /**
   * Milliseconds that a run, a socket or a response waits for a reader that takes nothing, at most twice as long. Default 60,000. Beyond that,
   * the reader counts as gone: `reader-too-slow`. Once the run has ended, also how long `drain` and `waitUntil` wait for it to take the rest.
   */
  readonly stallTime?: number | undefined
}

/** A {@link Share}, complete. */
export interface FullShare {
  readonly perOwner: number
  readonly total: number
}

/** {@link Limits}, validated and complete. */
export type FullLimits = Readonly<Record<ShareName, FullShare> & Record<NumberName, number>>

type ShareName = 'runs' | 'runBytes' | 'arrivingBytes' | 'earlyAnswers' | 'earlyAnswerSize'
type NumberName = Exclude<keyof Limits, ShareName>

const MIB = 1024 * 1024

export const DEFAULT_LIMITS: FullLimits = {
  bodyBytes: 4 * MIB,
  messages: 20_000,
  callsPerMessage: 256,
  answers: 256,
  openCalls: 1024,
  depth: 64,
  idLength: 256,
  runs: { perOwner: 64, total: 2000 },
  runBytes: { perOwner: 64 * MIB, total: 256 * MIB },
  arrivingBytes: { perOwner: 32 * MIB, total: 128 * MIB },
  arrivalTime: 60_000,
  resultSize: 2 * MIB,
  cachedThreadBytes: 128 * MIB,
  earlyAnswers: { perOwner: 256, total: 4096 },
  earlyAnswerSize: { perOwner: 4 * MIB, total: 32 * MIB },
  unreadBytes: 64 * 1024,
  reportedBytes: MIB,
  stallTime: 60_000,
}

const share = group<Share>({ perOwner: wholeNumber, total: wholeNumber })

/** What each limit must be. */
export const limitRules: Rules<Limits> = {
  bodyBytes: wholeNumber,
  messages: wholeNumber,
  callsPerMessage: wholeNumber,
  answers: wholeNumber,
  openCalls: wholeNumber,
  depth: wholeFrom(1, 1000),
  // Servers make ids of that length themselves.
  idLength: wholeFrom(DEFAULT_LIMITS.idLength),
  runs: share,
  runBytes: share,
  arrivingBytes: share,
  arrivalTime: positiveNumber,
  resultSize: wholeNumber,
  cachedThreadBytes: wholeFrom(0),
  earlyAnswers: share,
  earlyAnswerSize: share,
  unreadBytes: wholeNumber,
  reportedBytes: wholeNumber,
  stallTime: positiveNumber,
}

/** Fills in the defaults of limits that {@link limitRules} have checked. `maxMessageBytes`: of the threads, where a result must fit. */
export function readLimits(given: Limits = {}, maxMessageBytes = Number.POSITIVE_INFINITY): FullLimits {
  const share = (name: ShareName): FullShare => ({
    ...DEFAULT_LIMITS[name],
    ...omitUndefined(given[name] ?? {}),
  })
  const limits = { ...DEFAULT_LIMITS, ...omitUndefined(given) }
  return {
    ...limits,
    resultSize: Math.min(limits.resultSize, Math.floor(maxMessageBytes / 2)),
    runs: share('runs'),
    runBytes: share('runBytes'),
    arrivingBytes: share('arrivingBytes'),
    arrivalTime: Math.min(limits.arrivalTime, MAX_DELAY),
    earlyAnswers: share('earlyAnswers'),
    earlyAnswerSize: share('earlyAnswerSize'),
    stallTime: Math.min(limits.stallTime, MAX_DELAY),
  }
}

/** The error of a request that exceeds a limit: it names the limit, its value, and the option. `what`: what there is too much of, and in what. */
export function exceeds(
  name: NumberName,
  limits: FullLimits,
  [whole, what]: readonly [string, string],
  hint = 'Send less',
): CountersignError {
  const max = limits[name]
  const limit = `limits.${name}`
  const message = `${whole} has at most ${max} ${what} (the option \`${limit}\` of createAgent). ${hint}.`
  return new CountersignError('request-too-large', message, { status: 413, limit, max })
}
