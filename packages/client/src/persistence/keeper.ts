import { CountersignError, isCountersignError, readRecord, type ToolMap } from '@countersign/core'
import type { Session } from '../session.js'
import type { Persistence } from './persistence.js'

/** How long changes are collected before they are saved, in milliseconds. What may not be lost is saved at once. */
const saveDelay = 250

/**
 * Keeps one conversation in a {@link Persistence}: loads it once, then saves what changed, one save at a time and the newest state
 * last. A store that fails is told of by `onError`; the chat goes on.
 */
export class Keeper<Tools extends ToolMap> {
  /** Whether the conversation is here, so that acts need not wait. */
  ready = false
  /** Another tab saves: this one only reads. */
  mayNotSave = () => false
  /** The store could not be read: this conversation is not kept, so that the stored one is not lost. */
  #unreadable = false
  #subscribed = false
  readonly #session: Session<Tools>
  readonly #persistence: Persistence
  #loading: Promise<void> | undefined
  #saving: Promise<boolean> | undefined
  #timer: ReturnType<typeof setTimeout> | undefined
  #dirty = false

  constructor(session: Session<Tools>, persistence: Persistence) {
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
      const record = await this.#persistence.load(this.#session.threadId)
      if (record && !this.ready) this.#session.dispatch({ type: 'restore', record })
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
    if (!this.ready || this.#unreadable || this.mayNotSave()) return
    this.#dirty = true
    this.#timer ??= setTimeout(() => void this.flush(), saveDelay)
  }

  /** Saves now what is not saved yet. Resolves, when it is, to whether it could be saved. Leaves no timer. */
  flush(): Promise<boolean> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.mayNotSave()) return Promise.resolve(true)
    this.#saving ??= this.#save().finally(() => {
      this.#saving = undefined
    })
    return this.#saving
  }

  /** Saves until nothing has changed meanwhile. */
  async #save(): Promise<boolean> {
    try {
      while (this.#dirty) {
        this.#dirty = false
        await this.#persistence.save(this.#session.threadId, readRecord(this.#session.state))
      }
      return true
    } catch (cause) {
      this.#dirty = true
      this.#session.failed(
        toError(
          cause,
          'The conversation could not be saved. It goes on, but a reload will not show all of it.',
        ),
      )
      return false
    }
  }
}

function toError(cause: unknown, message: string): CountersignError {
  return isCountersignError(cause)
    ? cause
    : new CountersignError('persistence-unavailable', message, {}, cause)
}
