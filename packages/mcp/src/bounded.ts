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

/** How often work is begun again that was stopped without having had the processor for half of its time. */
const ATTEMPTS = 10

/**
 * Bounds what somebody else's schemas may cost on this thread: a pattern can take longer than anybody waits, and so can references that
 * double. Half a second at once, five seconds together, and a tenth of the time for long. Node's own watchdog ends what takes longer.
 * What counts is processor time, so that no schema is blamed for a machine that is busy or was asleep.
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

/** Milliseconds. */
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
