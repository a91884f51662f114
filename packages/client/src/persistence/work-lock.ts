/** Web Locks, as far as they are used. */
export type Locks = Pick<LockManager, 'request' | 'query'>

export interface WorkLockOptions {
  readonly locks: Locks | undefined
  /** Has the conversation's id, which rendering must not make. */
  readonly name: () => string
  /** The page needs the lock, also when nothing loads. */
  readonly isWorking: () => boolean
  /** Nobody uses the conversation any more. */
  readonly isGone: () => boolean
  /** Milliseconds that a load may keep the lock. */
  readonly timeout: number
}

interface Own {
  readonly release: AbortController
  readonly isTry: boolean
  isHeld: boolean
  ended: Promise<unknown> | undefined
}

/**
 * Of the pages of one browser that share a conversation, one at a time works on it: it has sent something, or runs client tools. The browser
 * releases the lock of a page that is gone, also when it is reloaded. Where the platform has no locks, each page works alone.
 */
export class WorkLock {
  #locks: Locks | undefined
  readonly #options: WorkLockOptions
  /** Asked for, and perhaps held. */
  #own: Own | undefined
  /** Settles when the last lock that was released is free again. */
  #freed: Promise<unknown> | undefined
  #isWanted = false
  /** The answer to the last try. */
  #tried: Promise<boolean | undefined> | undefined
  /** What holds the lock while the conversation loads: two commands may each load it. */
  readonly #loads = new Set<unknown>()

  constructor(options: WorkLockOptions) {
    this.#locks = options.locks
    this.#options = options
  }

  /** Whether this page may work now: no other page does. It holds the lock then. `undefined`: this cannot be known. */
  async try(): Promise<boolean | undefined> {
    const isFree = await this.#try()
    // Work begins at once, or not at all.
    if (isFree) setTimeout(() => this.update())
    return isFree
  }

  /**
   * Takes the lock before reading and keeps it until everything is read. Otherwise another page could start and finish a call in between, and
   * neither the storage nor the response would show it.
   */
  async during<T>(load: (isFree: boolean | undefined) => Promise<T>): Promise<T> {
    const isFree = await this.try()
    if (isFree) this.#loads.add(load)
    const end = () => {
      this.#loads.delete(load)
      this.update()
    }
    // The storage or the server may never answer.
    const limit = setTimeout(end, this.#options.timeout)
    try {
      return await load(isFree)
    } finally {
      clearTimeout(limit)
      setTimeout(end)
    }
  }

  /** Whether the lock was not given up since this load began. */
  isHeldFor(load: unknown): boolean {
    return this.#loads.has(load)
  }

  /** Holds the lock while this page works or loads. If another one works too, the lock follows once that one is done. */
  update(): void {
    const { isWorking, isGone } = this.#options
    if ((isWorking() || this.#loads.size > 0) && !isGone()) this.#take()
    else this.release()
  }

  async #try(): Promise<boolean | undefined> {
    if (!this.#locks) return undefined
    const own = this.#own
    if (!own) {
      this.#tried = this.#ask({ ifAvailable: true })
      return this.#tried
    }
    if (!own.isHeld) return own.isTry ? this.#tried : false
    // A page that has begun to work meanwhile waits for it.
    const { pending = [] } = await this.#locks.query()
    // Released meanwhile, so another page may have it.
    if (this.#own !== own) return this.#try()
    return !pending.some(({ name }) => name === this.#options.name())
  }

  #take(): void {
    this.#isWanted = true
    if (this.#locks && !this.#own) void this.#ask({})
  }

  release(): void {
    this.#isWanted = false
    // What is only tried is released once that is known.
    if (this.#own?.isTry && !this.#own.isHeld) return
    this.#own?.release.abort()
    this.#freed = this.#own?.ended ?? this.#freed
    this.#own = undefined
  }

  #ask({ ifAvailable = false }: LockOptions): Promise<boolean | undefined> {
    const own: Own = { release: new AbortController(), isTry: ifAvailable, isHeld: false, ended: undefined }
    const { signal } = own.release
    this.#own = own
    return new Promise((resolve) => {
      const hold = (lock: Lock | null) => {
        own.isHeld = lock !== null && !signal.aborted
        resolve(own.isHeld)
        if (!lock && this.#own === own) {
          this.#own = undefined
          if (this.#isWanted) this.#take()
        }
        if (own.isHeld) return new Promise<void>((done) => signal.addEventListener('abort', () => done()))
      }
      // Browsers do not allow `signal` together with `ifAvailable`.
      const options = ifAvailable ? { ifAvailable } : { signal }
      const request = async () => {
        // Otherwise this page would find its own lock still held.
        if (ifAvailable) await this.#freed
        await this.#locks?.request(this.#options.name(), options, hold)
      }
      own.ended = request().catch(() => {
        // Not released while it waited: the platform grants no locks here, for example to a frame with an opaque origin.
        if (!signal.aborted) this.#locks = undefined
        resolve(undefined)
      })
    })
  }
}
