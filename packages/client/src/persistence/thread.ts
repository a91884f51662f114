import { readMirror, readRecord, type ThreadRecord } from '@countersign/core'
import { wait } from '../connections/wait.js'
import type { TabHost, TabLink } from '../tabs/link.js'
import { Keeper, longest } from './keeper.js'
import type { LeftRuns } from './left-runs.js'
import type { KeptSession, KeptThread, Limits, ThreadHost, ThreadStorage } from './persistence.js'

/** One client's conversation, stored in a {@link Persistence} and shared with other tabs, if there are any. */
export class Thread implements KeptThread {
  readonly #session: KeptSession
  readonly #host: ThreadHost
  readonly #keeper: Keeper
  /** The number of pending commands. */
  #underWay = 0
  /** Those of them that wait for the conversation to load; later commands must not overtake them. */
  #waiting = 0
  #entered: Promise<TabLink | undefined> | undefined
  #link: TabLink | undefined
  /** The platform cannot share it between tabs. */
  #isAlone = false
  readonly #left: LeftRuns | undefined
  readonly #timeout: number

  constructor(
    session: KeptSession,
    host: ThreadHost,
    persistence: ThreadStorage,
    limits: Limits,
    left?: LeftRuns,
  ) {
    this.#left = left
    this.#timeout = limits.timeout
    this.#session = session
    this.#host = host
    this.#keeper = new Keeper(session, persistence, limits)
    this.#keeper.mayNotSave = () => left?.isFollower === true
  }

  perform(name: string, value: unknown, here: () => unknown): unknown {
    if (this.#waiting === 0 && this.#isHere()) return here()
    this.#waiting++
    return this.#during(
      this.#open().then((link) => {
        this.#waiting--
        if (link && !link.leads) return link.forward(name, value)
        const held = this.#left?.hold(name, value)
        if (held) void this.keep()
        return held ?? here()
      }),
    )
  }

  enter(): Promise<unknown> {
    return this.#during(this.#open())
  }

  keep(): Promise<boolean> {
    this.#left?.update()
    return this.#keeper.keep()
  }

  /** Loads again what has changed elsewhere. Resolves to whether that is shown. */
  reload(): Promise<boolean> {
    return this.#keeper.reload()
  }

  mayStart(): Promise<boolean> | undefined {
    return this.#left?.mayStart(async () => {
      if (await this.#keeper.reload()) await this.#rejoin(this.#keeper.loaded)
    })
  }

  replace(): void {
    this.#keeper.skipLoading()
  }

  /** Keeps the thread in use until the promise settles. */
  #during<T>(done: Promise<T>): Promise<T> {
    this.#underWay++
    const over = () => {
      this.#underWay--
      this.leaveIfUnused()
    }
    void done.then(over, over)
    return done
  }

  /** Whether the conversation is loaded, and this tab may change it. */
  #isHere(): boolean {
    const mayShare = this.#session.options.tabs !== undefined && !this.#isAlone
    if (this.#left?.isAsking) return false
    return mayShare ? this.#link?.leads === true : this.#keeper.ready
  }

  /** Loads the conversation from the storage, or from the tab that leads. */
  #open(): Promise<TabLink | undefined> {
    this.#entered ??= this.#join()
    return this.#entered
  }

  async #join(): Promise<TabLink | undefined> {
    const link = this.#session.options.tabs?.join(this.#tabHost)
    if (!link) {
      this.#isAlone = true
      if (this.#left) this.#left.isAsking = true
      await this.#keeper.restore()
      await this.#rejoin(this.#keeper.loaded)
      return undefined
    }
    this.#link = link
    this.#session.onStep = link.stepped
    this.#keeper.mayNotSave = () => !link.leads
    await link.ready
    return link
  }

  /** Rejoins the run that a record tells of. A server that does not respond must not block the chat. */
  async #rejoin(record: ThreadRecord | undefined): Promise<void> {
    if (this.#left) this.#left.isAsking = record !== undefined
    if (!record) return
    const keep = () => this.#keeper.keep()
    const known = new AbortController()
    const late = wait(Math.min(this.#timeout, longest), known.signal)
    await Promise.race([this.#left?.rejoin(record, keep), late])
    known.abort()
  }

  get #tabHost(): TabHost {
    const session = this.#session
    return {
      threadId: session.threadId,
      capture: () => readMirror(session.state),
      mirror: (state) => session.follow([{ type: 'mirror', state }]),
      follow: (steps) => session.follow(steps),
      perform: (name, value) => this.#host.perform(name, value),
      // Loaded before, where the tab that led did not respond: that may have stored more since.
      load: async () => void (await (this.#keeper.ready ? this.#keeper.reload() : this.#keeper.restore())),
      rejoin: () => this.#rejoin(this.#keeper.loaded),
      failed: (error) => session.failed(error),
      takeOver: (error) => {
        const record = readRecord(session.state)
        this.#keeper.takeOver()
        this.#host.takeOver(error)
        return this.#rejoin(record)
      },
    }
  }

  get #isUnused(): boolean {
    return this.#host.isUnused(this.#underWay)
  }

  leaveIfUnused(): void {
    if (!this.#isUnused) return
    const link = this.#link
    this.#left?.update()
    void this.#keeper.flush().then((saved) => {
      if (!link || this.#link !== link || !this.#isUnused) return
      this.#link = undefined
      this.#entered = undefined
      this.#session.onStep = undefined
      link.leave()
      // Other tabs may continue the conversation, so the stored one will be newer than this.
      if (saved) this.#keeper.forget()
    })
  }
}
