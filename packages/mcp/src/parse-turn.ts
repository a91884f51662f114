import { setImmediate as afterThis } from 'node:timers/promises'

/** What is smaller is parsed as it comes. */
export const isLarge = (bytes: number) => bytes >= 64 * 1024

let last: Promise<void> = Promise.resolve()

/**
 * Passes on a response, to be parsed. Objects can take 25 times the bytes of their text, so only one large response of the process is
 * parsed at a time, and the next one once the result of the last has been read, which takes no I/O.
 */
export function inParseTurn(size: number, pass: () => void): Promise<void> | void {
  if (!isLarge(size)) return pass()
  const turn = last.then(async () => {
    pass()
    await afterThis()
  })
  last = turn.catch(() => {})
  return turn
}
