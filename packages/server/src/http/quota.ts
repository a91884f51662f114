import type { FullLimits, FullShare } from '../limits.js'
import { tooMany } from './run-input.js'

/** Whose a resource is: the subject, or nothing where the caller is not known. */
export type QuotaOwner = string | undefined

/** Something that was taken out of a quota. */
export interface Held {
  /** Takes more, or gives some back with a negative number. Whether there was room; where there was none, nothing is taken. */
  grow(size: number): boolean
  /** Gives all of it back. */
  release(): void
}

interface Use {
  count: number
  size: number
}

/** What is in use of one resource, by owner. It holds an entry only for those who hold something. */
class Quota {
  readonly #owners = new Map<QuotaOwner, Use>()
  readonly #total: Use = { count: 0, size: 0 }

  /** Takes one thing of this size, or nothing where there is no room for it. */
  take(owner: QuotaOwner, size: number, counts: FullShare, sizes: FullShare): Held | undefined {
    if (!this.#move(owner, 1, size, counts, sizes)) return undefined
    let held = size
    let released = false
    return {
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
      more <= 0 || (use[name] + more <= shareOf(owner, share) && this.#total[name] + more <= share.total)
    if (!fits('count', count, counts) || !fits('size', size, sizes)) return false
    for (const one of [use, this.#total]) {
      one.count += count
      one.size += size
    }
    if (use.count === 0) this.#owners.delete(owner)
    else this.#owners.set(owner, use)
    return true
  }
}

/** Callers who are not known are as one: whoever is known must find room beside them. */
function shareOf(owner: QuotaOwner, { perOwner, total }: FullShare): number {
  return owner === undefined ? Math.max(1, total / 2) : perOwner
}

// of the process, as its memory is: an agent may be made for each request
const runs = new Quota()
const arriving = new Quota()
const earlyAnswers = new Quota()

/**
 * Room for a run and the request that it holds, or for a reader of a run.
 *
 * @throws CountersignError `too-many-runs`
 */
export function takeRun(owner: QuotaOwner, limits: FullLimits, input?: unknown): Held {
  const size = input === undefined ? 0 : bytesHeldBy(input)
  const held = runs.take(owner, size, limits.runs, limits.runBytes)
  if (held !== undefined) return held
  throw tooMany(
    'too-many-runs',
    'Too many runs are open, or they hold too much. End some, shorten the history, or send it again later.',
  )
}

/** What holds a few bytes still costs something: a connection, a promise. */
const OVERHEAD = 1024
const unlimited: FullShare = { perOwner: Number.POSITIVE_INFINITY, total: Number.POSITIVE_INFINITY }

/** Room for what arrives, of a caller who may not be known yet. */
export function takeArriving(owner: QuotaOwner, size: number, limits: FullLimits): Held | undefined {
  return arriving.take(owner, size + OVERHEAD, unlimited, limits.arrivingBytes)
}

/** Room for an answer whose question was not asked yet. */
export function takeEarlyAnswer(owner: QuotaOwner, size: number, limits: FullLimits): Held | undefined {
  return earlyAnswers.take(owner, size, limits.earlyAnswers, limits.earlyAnswerSize)
}

/** Roughly how many bytes a parsed value holds. Iterative: what came in may be deep. */
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
