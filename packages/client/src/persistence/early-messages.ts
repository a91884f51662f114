import { type QueuedMessage, readRecord, type ThreadRecord } from '@countersign/core'
import type { SendResult } from '../results.js'
import type { KeptSession } from './persistence.js'
import type { Unsent } from './unsent.js'

/** Messages that are sent while the conversation is loading. Each is shown in the queue at once, and leaves it to be sent. */
export class EarlyMessages {
  readonly #session: Pick<KeptSession, 'state' | 'dispatch'>
  readonly #unsent: Pick<Unsent, 'save'>
  /** Settles when the last of them is stored. */
  stored: Promise<void> = Promise.resolve()
  readonly #waiting = new Set<string>()
  /** A record that was stored before must not bring them back. */
  readonly #cancelled = new Set<string>()

  constructor(session: Pick<KeptSession, 'state' | 'dispatch'>, unsent: Pick<Unsent, 'save'>) {
    this.#session = session
    this.#unsent = unsent
  }

  add(item: QueuedMessage): void {
    this.#waiting.add(item.id)
    this.#session.dispatch({ type: 'queue', item })
    this.#save()
  }

  /** A page that is closed before it has loaded leaves them to the next one. */
  #save(): void {
    const save = () => this.#unsent.save(readRecord(this.#session.state))
    this.stored = this.stored.then(save, save)
  }

  /** Takes a message back; returns whether it was waiting. */
  cancel(id: unknown): boolean {
    const isWaiting = this.#leave(String(id))
    if (!isWaiting) return false
    this.#cancelled.add(String(id))
    this.#save()
    return true
  }

  /** Sends a message, now that the conversation is loaded. If it could not be, the message stays in the queue until it is. */
  send({ id }: QueuedMessage, isLoaded: boolean, send: () => unknown): unknown {
    const queued: SendResult = { status: 'queued', id }
    if (isLoaded) return this.#leave(id) ? send() : queued
    this.#waiting.delete(id)
    return queued
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
