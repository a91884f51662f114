/** How a conversation ended. */
export interface Ending {
  /** Ctrl-C ended it. */
  readonly interrupted: boolean
  /** A run failed. */
  readonly failed: boolean
  /** How many requests were denied because there was no terminal to ask in. */
  readonly deniedUnasked: number
}

/** 0: done. 1: a run failed. 3: something was denied because there was no terminal to ask in. 130: interrupted. */
export function exitCodeOf({ interrupted, failed, deniedUnasked }: Ending): number {
  if (interrupted) return 130
  if (failed) return 1
  return deniedUnasked > 0 ? 3 : 0
}

/** The program was called with invalid arguments. */
export const CALLED_WRONGLY = 2
