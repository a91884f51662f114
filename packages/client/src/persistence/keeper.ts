import {
  CountersignError,
  isCountersignError,
  isThreadRecord,
  readRecord,
  type ThreadRecord,
} from '@countersign/core'
import { loadsLate, noRecord, tooSlow } from './failures.js'
import type { KeptSession, Limits, ThreadStorage } from './persistence.js'

/** The longest delay (ms) a timer supports. */
export const longest = 2 ** 31 - 1

/**
 * Keeps one conversation in a {@link Persistence}: loads it once, then saves changes, one save at a time and
 * the newest state last. If the storage fails, `onError` is called and the chat continues.
 */
export class Keeper {
  /** Whether the conversation is loaded, so that commands need not wait. */
  ready = false
  /** What was taken over from the storage last. */
  loaded: ThreadRecord | undefined
  /** True while another tab or page saves, and this one only reads. */
  mayNotSave = () => false
  /** The storage could not be read. This conversation is not saved, so that the stored one is not lost. */
  #unreadable = false
  #subscribed = false
  readonly #session: KeptSession
  readonly #persistence: ThreadStorage
  readonly #limits: Limits
  #loading: Promise<void> | undefined
  #saving: Promise<boolean> | undefined
  #reloading: Promise<unknown> = Promise.resolve()
  #timer: ReturnType<typeof setTimeout> | undefined
  /** The number of changes, and how many of them are saved. */
  #changes = 0
  #saved = 0
  #failing = false
  /** The number of requests that were open at the last change. */
  #requests = 0

  constructor(session: KeptSession, persistence: ThreadStorage, limits: Limits) {
    this.#limits = limits
    this.#session = session
    this.#persistence = persistence
  }

  /** Loads the conversation, once. Never rejects. */
  restore(): Promise<void> {
    this.#loading ??= this.#load()
    return this.#loading
  }

  /** The conversation is replaced, so the stored one is not needed. */
  skipLoading(): void {
    this.#begin()
    this.#loading ??= Promise.resolve()
  }

  async #load(): Promise<void> {
    try {
      const { threadId } = this.#session
      const record = await this.#inTime(
        this.#persistence.load(threadId),
        this.#persistence.merges ? loadsLate : tooSlow,
      )
      // Validated for any storage: from half a conversation, an approval request might be withdrawn that nobody was shown.
      const damage = record && !isThreadRecord(record) ? noRecord(threadId, record) : undefined
      this.#unreadable = damage !== undefined && !this.#persistence.merges
      if (damage) this.#session.failed(damage)
      else if (record && !this.ready) this.#restore(record)
    } catch (cause) {
      const error = toError(cause, 'The stored conversation could not be read; it was left as it is.')
      // The stored data may be intact, so it is not overwritten. Corrupt data was moved aside.
      this.#unreadable = error.code !== 'persistence-corrupt' && !this.#persistence.merges
      this.#session.failed(error)
      // The page shows less than the conversation: it must not look complete.
      if (this.#persistence.merges && !this.ready) this.#session.dispatch({ type: 'failed', error })
    }
    this.#begin()
  }

  #restore(record: ThreadRecord): void {
    this.loaded = record
    this.#session.dispatch({ type: 'restore', record })
    this.#persistence.restored?.()
  }

  /**
   * Loads again what has changed elsewhere, unless something changes here meanwhile. A failure changes nothing. One at a time: two would
   * each take the other for such a change. Resolves to whether what was loaded is shown.
   */
  reload(): Promise<boolean> {
    const next = () => this.#reloadNow()
    const shown = this.#reloading.then(next, next)
    this.#reloading = shown
    return shown
  }

  async #reloadNow(): Promise<boolean> {
    if (!this.ready || !(await this.keep())) return false
    const changes = this.#changes
    const record = await this.#inTime(this.#persistence.load(this.#session.threadId)).catch(() => undefined)
    if (!isThreadRecord(record) || !this.ready || changes !== this.#changes) return false
    this.#unreadable = false
    this.#restore(record)
    return true
  }

  /** From now on, changes are saved. */
  #begin(): void {
    this.ready = true
    if (this.#subscribed) return
    this.#subscribed = true
    this.#session.store.subscribe(() => this.#changed())
  }

  /** The stored conversation may change elsewhere: the next `restore` loads it again. */
  forget(): void {
    this.ready = false
    this.#loading = undefined
  }

  /** Texts that grow wait; what the user is asked is saved at once, because a page may be left at any moment. */
  #changed(): void {
    if (!this.#mark()) return
    const { asked, interrupts } = this.#session.state
    const requests = asked.length + interrupts.size
    if (requests > this.#requests) void this.flush()
    else this.#timer ??= setTimeout(() => void this.flush(), this.#limits.saveEvery)
    this.#requests = requests
  }

  #mark(): boolean {
    if (!this.ready || this.#unreadable || this.mayNotSave()) return false
    this.#changes++
    return true
  }

  /** Saves the current state, even if listeners have not been notified of it yet. */
  keep(): Promise<boolean> {
    this.#mark()
    return this.flush()
  }

  /** This tab saves from now on, starting with its current state. */
  takeOver(): void {
    this.skipLoading()
    this.#changes++
  }

  /** Saves all unsaved changes; later ones wait for their own save. Resolves to whether it succeeded. Leaves no timer. */
  async flush(): Promise<boolean> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const wanted = this.#changes
    while (this.#saved < wanted && !this.mayNotSave()) {
      this.#saving ??= this.#save().finally(() => {
        this.#saving = undefined
      })
      if (!(await this.#isSaved(this.#saving))) return false
    }
    return true
  }

  /** Only one save runs at a time, so changes blocked by a slow one are saved once it has settled. */
  async #isSaved(saving: Promise<boolean>): Promise<boolean> {
    try {
      return await this.#inTime(saving)
    } catch (cause) {
      void saving.then(() => this.flush())
      return this.#fail(cause)
    }
  }

  /** A storage that does not respond must not block the chat. */
  #inTime<T>(work: Promise<T>, failure = tooSlow): Promise<T> {
    const { timeout } = this.#limits
    let timer: ReturnType<typeof setTimeout> | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(failure(timeout)), Math.min(timeout, longest))
    })
    return Promise.race([work, late]).finally(() => clearTimeout(timer))
  }

  async #save(): Promise<boolean> {
    const changes = this.#changes
    try {
      await this.#persistence.save(this.#session.threadId, readRecord(this.#session.state))
      this.#saved = changes
      this.#failing = false
      return true
    } catch (cause) {
      return this.#fail(cause)
    }
  }

  /** Reported once, not for every change: the advice is the same until a save succeeds. */
  #fail(cause: unknown): false {
    if (!this.#failing) this.#session.failed(toError(cause, notSaved))
    this.#failing = true
    return false
  }
}

const notSaved = 'The conversation could not be saved. It goes on, but a reload will not show all of it.'

function toError(cause: unknown, message: string): CountersignError {
  return isCountersignError(cause)
    ? cause
    : new CountersignError('persistence-unavailable', message, {}, cause)
}
