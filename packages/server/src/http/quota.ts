import type { FullLimits, FullShare } from '../limits.js'
import { tooMany } from './run-input.js'

/** The owner of a resource: the subject, or undefined if the caller is not known. */
export type QuotaOwner = string | undefined

/** A share taken from a quota. */
export interface Held {
  readonly size: number
  /** Takes more, or returns some with a negative number. Returns whether there was room; if not, nothing is taken. */
  grow(size: number): boolean
  /** Returns all of it. */
  release(): void
}

interface Use {
  count: number
  size: number
}

/** The shares of one resource, by owner and in total. Only owners who hold something have an entry. */
export class Quota {
  readonly #owners = new Map<QuotaOwner, Use>()

  constructor(readonly total: Use = { count: 0, size: 0 }) {}

  /** Takes one item of this size, or returns undefined if there is no room. */
  take(owner: QuotaOwner, size: number, counts: FullShare, sizes: FullShare): Held | undefined {
    if (!this.#move(owner, 1, size, counts, sizes)) return undefined
    let held = size
    let released = false
    return {
      get size() {
        return held
      },
      grow: (more) => {
        if (released || !this.#move(owner, 0, more, counts, sizes)) return false
        held += more
        return true
      },
      release: () => {
        if (released) return
        released = true
        this.#move(owner, -1, -held, counts, sizes)
      },
    }
  }

  #move(owner: QuotaOwner, count: number, size: number, counts: FullShare, sizes: FullShare): boolean {
    const use = this.#owners.get(owner) ?? { count: 0, size: 0 }
    const fits = (name: keyof Use, more: number, share: FullShare) =>
      more <= 0 || (use[name] + more <= shareOf(owner, share) && this.total[name] + more <= share.total)
    if (!fits('count', count, counts) || !fits('size', size, sizes)) return false
    for (const one of [use, this.total]) {
      one.count += count
      one.size += size
    }
    if (use.count === 0) this.#owners.delete(owner)
    else this.#owners.set(owner, use)
    return true
  }
}

/** All unknown callers share one half: known ones must find room besides them. */
function shareOf(owner: QuotaOwner, { perOwner, total }: FullShare): number {
  return owner === undefined ? Math.max(1, total / 2) : perOwner
}

// Per process, like its memory: agents may be created per request.
const runs = new Quota()
// A user whose runs take the whole share must still be able to load what they wait for. Only the total is shared.
const replies = new Quota(runs.total)
const arriving = new Quota()
const earlyAnswers = new Quota()

/**
 * Takes room for a run and its request, or for a reader of a run.
 *
 * @throws CountersignError `too-many-runs`
 */
export function takeRun(owner: QuotaOwner, limits: FullLimits, input?: unknown): Held {
  const size = input === undefined ? 0 : bytesHeldBy(input)
  const held = runs.take(owner, size, limits.runs, limits.runBytes)
  if (held === undefined) throw tooManyRuns()
  return held
}

/**
 * Takes more room, for the stored conversation of a run. The largest one fits if its owner has no other run.
 *
 * @throws CountersignError `too-many-runs`
 */
export function holdMore(held: Held, size: number, { runBytes }: FullLimits): void {
  if (!held.grow(Math.min(size, Math.max(0, runBytes.perOwner - held.size)))) throw tooManyRuns()
}

/**
 * Takes room for each result of a run, twice its size: the run keeps it for the model, and its text waits for the reader. Together they take
 * at most the share of one user. The first result always fits, or its run could never continue.
 */
export function holdResults(held: Held, limits: FullLimits): (result: { readonly content: unknown }) => void {
  let taken = 0
  return ({ content }) => {
    const size = 2 * bytesHeldBy(content)
    if (taken > 0 && taken + size > limits.runBytes.perOwner) throw tooManyRuns()
    holdMore(held, size, limits)
    taken += size
  }
}

/**
 * Takes room for a reply. The largest one fits if its reader waits for no other.
 *
 * @throws CountersignError `too-many-runs`
 */
export function takeReply(owner: QuotaOwner, size: number, { runs: counts, runBytes }: FullLimits): Held {
  const held = replies.take(owner, Math.min(size, runBytes.perOwner), counts, runBytes)
  if (held === undefined) throw tooManyRuns()
  return held
}

function tooManyRuns() {
  const message =
    'Too many runs are open, or they hold too much. End some, shorten the history, or send it again later.'
  return tooMany('too-many-runs', message)
}

/** Even a few bytes cost a connection and a promise. */
const OVERHEAD = 1024
const unlimited: FullShare = { perOwner: Number.POSITIVE_INFINITY, total: Number.POSITIVE_INFINITY }

/** Takes room for what arrives from a caller who may not be known yet. */
export function takeArriving(owner: QuotaOwner, size: number, limits: FullLimits): Held | undefined {
  return arriving.take(owner, size + OVERHEAD, unlimited, limits.arrivingBytes)
}

/** Takes room for a parsed request while it waits. The largest one fits if its sender has nothing else here. */
export function takeWaiting(owner: QuotaOwner, request: unknown, limits: FullLimits): Held | undefined {
  const most = limits.arrivingBytes.perOwner - OVERHEAD
  return takeArriving(owner, Math.min(bytesHeldBy(request), most), limits)
}

/** Takes room for an answer whose approval request was not made yet. */
export function takeEarlyAnswer(owner: QuotaOwner, size: number, limits: FullLimits): Held | undefined {
  return earlyAnswers.take(owner, size, limits.earlyAnswers, limits.earlyAnswerSize)
}

/** The approximate bytes that a parsed value occupies. Iterative, because input may be deeply nested. */
export function bytesHeldBy(value: unknown): number {
  let bytes = 0
  const open: unknown[] = [value]
  while (open.length > 0) {
    const one = open.pop()
    bytes += 64
    if (typeof one === 'string') bytes += 2 * one.length
    if (typeof one !== 'object' || one === null) continue
    if (Array.isArray(one)) for (const item of one) open.push(item)
    else {
      for (const [key, item] of Object.entries(one)) {
        bytes += 2 * key.length
        open.push(item)
      }
    }
  }
  return bytes
}
