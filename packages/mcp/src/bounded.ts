import { createContext, Script } from 'node:vm'
import { ToolError } from '@countersign/server'

/** Milliseconds that one piece of work may take. */
const MOST_AT_ONCE = 500
/** Milliseconds that all work may take in a row: enough to read the schemas of very many tools. */
const MOST_TOGETHER = 5000
/** The fraction of real time that is added back to the budget. */
const SHARE = 0.1

/** Runs `work` and returns its result. Throws if it takes too long, or the budget is used up. */
export type Bounded = <T>(work: () => T) => T

/** How often to restart work that was stopped before it had the processor for half of its time. */
const ATTEMPTS = 10

/**
 * Limits what a server's schemas may cost on this thread: a pattern can run practically forever, and so can references that double.
 * Half a second for one check, five seconds in a row, and a tenth of the time in the long run. Node's own watchdog stops what takes longer.
 * Only processor time counts, so that no schema is blamed for a machine that is busy or was asleep.
 */
export function createBounded(): Bounded {
  const holder: { work?: () => unknown } = {}
  const context = createContext(holder)
  let spare = MOST_TOGETHER
  let since = performance.now()
  return <T>(work: () => T): T => {
    const now = performance.now()
    spare = Math.min(MOST_TOGETHER, spare + (now - since) * SHARE)
    since = now
    for (let attempt = 1; ; attempt++) {
      const timeout = Math.floor(Math.min(MOST_AT_ONCE, spare))
      if (timeout < 1) throw tooSlow('the schemas of its server have taken too much time lately')
      const before = process.cpuUsage()
      try {
        holder.work = work
        return CALL.runInContext(context, { timeout })
      } catch (error) {
        if (!isTimeout(error)) throw error
        if (cpuSince(before) > timeout / 2 || attempt === ATTEMPTS)
          throw tooSlow(`it took more than ${timeout} ms`)
      } finally {
        delete holder.work
        spare -= cpuSince(before)
      }
    }
  }
}

/** Processor time in milliseconds. */
function cpuSince(before: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}

const CALL = new Script('work()')

function isTimeout(error: unknown): boolean {
  return Object(error).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT'
}

function tooSlow(why: string): Error {
  return new ToolError(`the check by this schema was stopped, since ${why}`)
}
