import type { QueuedMessage, ThreadRecord } from '@countersign/core'
import type { SendResult } from '../results.js'
import type { KeptSession } from './persistence.js'

/** Messages that are sent while the conversation is loading. Each is shown in the queue at once, and leaves it to be sent. */
export class EarlyMessages {
  readonly #session: Pick<KeptSession, 'state' | 'dispatch'>
  readonly #save: () => Promise<void>
  /** Settles when the last of them is stored. */
  stored: Promise<void> = Promise.resolve()
  readonly #waiting = new Set<string>()
  /** A record that was stored before must not bring them back. */
  readonly #cancelled = new Set<string>()

  /** `save` stores what the server was not sent. */
  constructor(session: Pick<KeptSession, 'state' | 'dispatch'>, save: () => Promise<void>) {
    this.#session = session
    this.#save = save
  }

  add(item: QueuedMessage): void {
    this.#waiting.add(item.id)
    this.#session.dispatch({ type: 'queue', item })
    this.#keep()
  }

  /** The user has called `stop()`: they stay in the queue, also after a reload. */
  hold(): void {
    if (this.#waiting.size === 0) return
    this.#waiting.clear()
    this.#keep()
  }

  /** There is nothing to load: they leave the queue, so that none is sent before an earlier one. */
  leaveQueue(): void {
    for (const id of this.#waiting) this.#session.dispatch({ type: 'unqueue', id })
  }

  /** A page that is closed before it has loaded leaves them to the next one. */
  #keep(): void {
    this.stored = this.stored.then(this.#save, this.#save)
  }

  /** Takes a message back; returns whether it was waiting. */
  cancel(id: unknown): boolean {
    const isWaiting = this.#leave(String(id))
    if (!isWaiting) return false
    this.#cancelled.add(String(id))
    this.#keep()
    return true
  }

  /** Sends a message, now that the conversation is loaded. If it could not be, or something is to be done first, the message stays in the queue. */
  send(item: QueuedMessage, mayGo: boolean, send: () => unknown): unknown {
    const { id } = item
    const { dispatch, state } = this.#session
    const queued: SendResult = { status: 'queued', id }
    if (!this.#leave(id)) return queued
    // Those that were said later stand in the queue already.
    const later = state.queue.filter((other) => this.#waiting.has(other.id))
    for (const other of later) dispatch({ type: 'unqueue', id: other.id })
    const sent = mayGo ? send() : dispatch({ type: 'queue', item })
    for (const other of later) dispatch({ type: 'queue', item: other })
    return mayGo ? sent : queued
  }

  #leave(id: string): boolean {
    const isWaiting = this.#waiting.delete(id)
    if (isWaiting) this.#session.dispatch({ type: 'unqueue', id })
    return isWaiting
  }

  /** A record to be shown, with what was queued here since it was read. Without what leaves the queue now. */
  withQueue(record: ThreadRecord): ThreadRecord {
    const known = new Set([...record.queue, ...record.messages].map(({ id }) => id))
    const since = this.#session.state.queue.filter(({ id }) => !known.has(id))
    const stays = ({ id }: QueuedMessage) => !this.#waiting.has(id) && !this.#cancelled.has(id)
    return { ...record, queue: [...record.queue, ...since].filter(stays) }
  }
}
