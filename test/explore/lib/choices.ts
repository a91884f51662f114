/** Who decides at a point where several things may happen next. */
export interface Chooser {
  /** One of `count` options; 0 is the planned one. */
  choose(count: number): number
  /** What was chosen so far, with how many options there were. Points with one option do not count. */
  readonly taken: readonly { readonly choice: number; readonly of: number }[]
}

/** Decisions in order; after the last of them everything goes as planned. */
export type Decisions = readonly number[]

export function replaying(decisions: Decisions): Chooser {
  return chooser((count, index) => Math.min(decisions[index] ?? 0, count - 1))
}

/** Deviates once in `rarity` times. */
export function drawing(random: () => number, rarity: number): Chooser {
  return chooser((count) => (random() * rarity < 1 ? 1 + Math.floor(random() * (count - 1)) : 0))
}

function chooser(decide: (count: number, index: number) => number): Chooser {
  const taken: { choice: number; of: number }[] = []
  return {
    taken,
    choose(count) {
      if (count < 2) return 0
      const choice = decide(count, taken.length)
      taken.push({ choice, of: count })
      return choice
    },
  }
}

/** The next timeline of a depth-first walk: the last decision that has an option left takes it. */
export function nextDecisions(taken: Chooser['taken']): Decisions | undefined {
  const last = taken.findLastIndex(({ choice, of }) => choice + 1 < of)
  if (last < 0) return undefined
  return taken.slice(0, last + 1).map(({ choice }, index) => (index === last ? choice + 1 : choice))
}

/** Numbers from 0 to 1 out of a seed (mulberry32), the same everywhere. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}
