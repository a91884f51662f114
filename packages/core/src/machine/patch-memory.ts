/** What a patch may mutate in place, and how much it may still copy. */
export interface PatchMemory {
  /** Arrays and objects that only the document holds and nobody has read. A patch adds the ones it creates. */
  readonly owned: WeakSet<object>
  /** How many values `copy` operations may still duplicate. */
  copies: number
  /** Whether `owned` may have members. Creating a new set for every snapshot would dominate its cost. */
  isUsed: boolean
}

/** How many values the `copy` operations of a conversation may duplicate, plus {@link COPIES_PER_DELTA} for each delta. */
const COPIES = 100_000
export const COPIES_PER_DELTA = 10

export function newMemory(copies = COPIES): PatchMemory {
  return { owned: new WeakSet(), copies, isUsed: false }
}
