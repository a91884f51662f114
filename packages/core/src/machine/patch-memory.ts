/** What a patch may change in place, and how much it may still copy. */
export interface PatchMemory {
  /** Arrays and objects that only the document holds, and that nobody has read. A patch adds those it makes. */
  readonly owned: WeakSet<object>
  /** How many values `copy` operations may still take along. */
  copies: number
  /** Whether anything may be owned: a set for each snapshot would cost more than all else in it. */
  isUsed: boolean
}

/** How many values the `copy` operations of a conversation may take along, beside {@link COPIES_PER_DELTA} for each delta. */
const COPIES = 100_000
export const COPIES_PER_DELTA = 10

export function newMemory(copies = COPIES): PatchMemory {
  return { owned: new WeakSet(), copies, isUsed: false }
}
