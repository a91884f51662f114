import { CountersignError, isCountersignError } from '@countersign/core'
import { sleep } from '../encoding/signals.js'
import type {
  HoldResult,
  InterruptedRun,
  RunHold,
  ThreadChange,
  ThreadFull,
  ThreadKey,
  ThreadStore,
} from '../threads/thread-store.js'

/** Milliseconds to wait for a run that is ending: a client that has just stopped may send its next message at once. */
const WAIT_MS = 1000

/**
 * Takes a thread for one run. Returns the runs that were interrupted on it.
 *
 * @throws CountersignError `thread-busy`, `thread-full`
 */
export async function takeThread(
  threads: ThreadStore,
  key: ThreadKey,
  run: RunHold,
  leaseMs: number,
): Promise<readonly InterruptedRun[]> {
  for (const until = performance.now() + WAIT_MS; ; ) {
    const held = await threads.hold(key, run, leaseMs)
    if (held.status !== 'busy' || held.runId === run.runId || performance.now() >= until)
      return checkHeld(held)
    await sleep(50)
  }
}

/** Gives back a thread that could not be opened. With `isAbandoned`, its lease ends at once, so that `recover` finds it. */
export async function leaveThread(
  threads: ThreadStore,
  key: ThreadKey,
  run: RunHold,
  isAbandoned: boolean,
): Promise<void> {
  await (isAbandoned ? threads.hold(key, run, 1, { renew: true }) : threads.release(key, run))
}

/** Changes one thread under one hold. `after` is the last message before the run's own, or empty: with it, a reader of the thread tells them apart. */
export class ThreadWriter {
  constructor(
    private readonly threads: ThreadStore,
    private readonly key: ThreadKey,
    readonly run: RunHold,
    private current: number,
    private readonly after: string,
  ) {}

  /** What is stored by now. */
  get version() {
    return this.current
  }

  async append(change: Omit<ThreadChange, 'version' | 'run'>): Promise<void> {
    const result = await this.threads.append(this.key, {
      ...change,
      version: this.current,
      run: this.run,
      cursor: this.after,
    })
    if (result.status === 'full') throw threadFull(result, change.spareBytes)
    if (result.status !== 'appended') throw await this.#lost()
    this.current = result.version
  }

  async renew(leaseMs: number): Promise<void> {
    const result = await this.threads.hold(this.key, this.run, leaseMs, { renew: true })
    if (result.status === 'lost') throw await this.#lost()
    checkHeld(result)
  }

  release(): Promise<void> {
    return this.threads.release(this.key, this.run)
  }

  /** Why the run does not have the thread any more. A thread that was removed and begun again counts its versions from 1. */
  async #lost(): Promise<CountersignError> {
    const now = await this.threads.load(this.key, Number.MAX_SAFE_INTEGER)
    return (now?.version ?? 0) < this.current ? removed() : takenOver(now?.run?.runId)
  }
}

/** Whether the run does not have its thread any more: another one has taken over, or the thread was removed. */
export function isLost(error: unknown): boolean {
  return isRemoval(error) || (isCountersignError(error) && error.code === 'thread-busy')
}

/** Whether the thread of a run was removed. */
export function isRemoval(error: unknown): boolean {
  return isCountersignError(error) && error.code === 'thread-unknown'
}

export function isFull(error: unknown): boolean {
  return isCountersignError(error) && error.code === 'thread-full'
}

/** @throws CountersignError `thread-busy`, `thread-full` */
function checkHeld(result: HoldResult): readonly InterruptedRun[] {
  if (result.status === 'full') throw threadFull(result)
  if (result.status === 'lost') throw takenOver(undefined)
  if (result.status === 'busy') {
    const message = 'Another run is open on this thread. Wait for its end, or rejoin it.'
    throw new CountersignError('thread-busy', message, { status: 409, runId: result.runId })
  }
  return result.interrupted
}

export function takenOver(runId: string | undefined): CountersignError {
  const message = 'Another run has taken this thread over. Load it again.'
  return new CountersignError('thread-busy', message, { status: 409, runId })
}

export function removed(): CountersignError {
  const message = 'This thread was removed while its run was open. Start a new one.'
  return new CountersignError('thread-unknown', message, { status: 404 })
}

function threadFull({ limit, max }: ThreadFull, spareBytes = 0): CountersignError {
  const what = max === undefined ? 'The store of threads has no room' : `It would exceed ${limit} (${max})`
  const help = limit === 'maxThreadsPerOwner' || limit === 'store' ? 'remove a thread' : 'start a new thread'
  const why = spareBytes > 0 ? ', with the largest results of its calls (limits.resultSize)' : ''
  const message = `${what}${why}: ${help}, or raise the limit, an option of the store. Nothing was stored.`
  // 413 is for a message that is too large in any thread: a client leaves that out of its next request. This one may be taken later.
  const status = limit === 'maxMessageBytes' ? 413 : 507
  return new CountersignError('thread-full', message, { status, limit, max })
}
