import { createContext, Script } from 'node:vm'
import { ToolError } from '@countersign/server'

/** Milliseconds that one piece of work may take. */
const MOST_AT_ONCE = 500
/** Milliseconds that all work may take at once: enough to read the schemas of very many tools. */
const MOST_TOGETHER = 5000
/** The part of the time that is given back as it passes. */
const SHARE = 0.1

/** Runs `work` and gives what it returns. Throws where it takes too long, or what came before it has. */
export type Bounded = <T>(work: () => T) => T

/**
 * Bounds what somebody else's schemas may cost on this thread: a pattern can take longer than anybody waits, and so can references that
 * double. Half a second at once, five seconds together, and a tenth of the time for long. Node's own watchdog ends what takes longer.
 */
export function createBounded(): Bounded {
  const holder: { work?: () => unknown } = {}
  const context = createContext(holder)
  let spare = MOST_TOGETHER
  let since = performance.now()
  return <T>(work: () => T): T => {
    const begun = performance.now()
    spare = Math.min(MOST_TOGETHER, spare + (begun - since) * SHARE)
    since = begun
    const timeout = Math.floor(Math.min(MOST_AT_ONCE, spare))
    if (timeout < 1) throw tooSlow('the schemas of its server have taken too much time lately')
    try {
      holder.work = work
      return CALL.runInContext(context, { timeout })
    } catch (error) {
      throw isTimeout(error) ? tooSlow(`it took more than ${timeout} ms`) : error
    } finally {
      delete holder.work
      since = performance.now()
      spare -= since - begun
    }
  }
}

const CALL = new Script('work()')

function isTimeout(error: unknown): boolean {
  return Object(error).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT'
}

function tooSlow(why: string): Error {
  return new ToolError(`the check by this schema was stopped, since ${why}`)
}
