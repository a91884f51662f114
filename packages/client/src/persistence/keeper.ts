import { CountersignError, isCountersignError, isThreadRecord, readRecord } from '@countersign/core'
import { noRecord, tooSlow } from './failures.js'
import type { KeptSession, Limits, Persistence } from './persistence.js'

/** The longest delay (ms) a timer takes. */
const longest = 2 ** 31 - 1

/**
 * Keeps one conversation in a {@link Persistence}: loads it once, then saves what changed, one save at a time and the newest state
 * last. A store that fails is told of by `onError`; the chat goes on.
 */
export class Keeper {
  /** Whether the conversation is loaded, so that commands need not wait. */
  ready = false
  /** Another tab saves: this one only reads. */
  mayNotSave = () => false
  /** The store could not be read: this conversation is not kept, so that the stored one is not lost. */
  #unreadable = false
  #subscribed = false
  readonly #session: KeptSession
  readonly #persistence: Persistence
  readonly #limits: Limits
  #loading: Promise<void> | undefined
  #saving: Promise<boolean> | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  /** How many changes there were, and how many of them are saved. */
  #changes = 0
  #saved = 0
  #failing = false

  constructor(session: KeptSession, persistence: Persistence, limits: Limits) {
    this.#limits = limits
    this.#session = session
    this.#persistence = persistence
  }

  /** Loads the conversation, the first time it is asked. Never rejects. */
  restore(): Promise<void> {
    this.#loading ??= this.#load()
    return this.#loading
  }

  /** The conversation is replaced: what is stored is not wanted any more. */
  skipLoading(): void {
    this.#begin()
    this.#loading ??= Promise.resolve()
  }

  async #load(): Promise<void> {
    try {
      const { threadId } = this.#session
      const record = await this.#inTime(this.#persistence.load(threadId))
      // Checked here, whatever the storage: half a conversation may withdraw a question that nobody was shown.
      const damage = record && !isThreadRecord(record) ? noRecord(threadId, record) : undefined
      this.#unreadable = damage !== undefined
      if (damage) this.#session.failed(damage)
      else if (record && !this.ready) this.#session.dispatch({ type: 'restore', record })
    } catch (cause) {
      const error = toError(cause, 'The stored conversation could not be read; it was left as it is.')
      // What is there may be whole: nothing is written over it. Damage was moved aside.
      this.#unreadable = error.code !== 'persistence-corrupt'
      this.#session.failed(error)
    }
    this.#begin()
  }

  /** From now on changes are saved. */
  #begin(): void {
    this.ready = true
    if (this.#subscribed) return
    this.#subscribed = true
    this.#session.store.subscribe(() => this.#changed())
  }

  /** What is stored may have moved on: the next `restore` loads it again. */
  forget(): void {
    this.ready = false
    this.#loading = undefined
  }

  #changed(): void {
    if (this.#mark()) this.#timer ??= setTimeout(() => void this.flush(), this.#limits.saveEvery)
  }

  #mark(): boolean {
    if (!this.ready || this.#unreadable || this.mayNotSave()) return false
    this.#changes++
    return true
  }

  /** Saves the conversation as it is now, whether or not anybody was told of it yet. */
  keep(): Promise<boolean> {
    this.#mark()
    return this.flush()
  }

  /** This tab keeps the conversation from now on, as it stands here. */
  takeOver(): void {
    this.skipLoading()
    this.#changes++
  }

  /** Saves what is not saved yet; what changes meanwhile waits for its own time. Resolves to whether it could be saved. Leaves no timer. */
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

  /** Only one save is under way at a time, so what a slow one holds up is saved once it has settled. */
  async #isSaved(saving: Promise<boolean>): Promise<boolean> {
    try {
      return await this.#inTime(saving)
    } catch (cause) {
      void saving.then(() => this.flush())
      return this.#fail(cause)
    }
  }

  /** A storage that does not answer must not hold up the chat. */
  #inTime<T>(work: Promise<T>): Promise<T> {
    const { timeout } = this.#limits
    let timer: ReturnType<typeof setTimeout> | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(tooSlow(timeout)), Math.min(timeout, longest))
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

  /** Told once, not with every change: what helps is the same until a save succeeds. */
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
