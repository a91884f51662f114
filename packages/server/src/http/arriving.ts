import type { FullLimits } from '../limits.js'
import { type Held, type QuotaOwner, takeArriving } from './quota.js'

/** The connection under a socket, where a platform shows it; that of node:http is one. */
export interface Wire {
  /** Before the socket's own listener: a chunk counts before it becomes a message. */
  prependListener(event: 'data', listener: (chunk: Uint8Array) => void): unknown
  removeAllListeners(event: 'data'): unknown
  resume(): unknown
}

/** Whoever is told that a socket has to go. */
type Refuse = (why: 'no-room' | 'late') => void

/** What an open socket costs that says nothing. */
const SOCKET_BYTES = 16 * 1024
/** What a chunk costs beside its bytes. */
const CHUNK_BYTES = 256
/** What a ping or a pong of a client has beside its payload. */
const CONTROL_BYTES = 6

/**
 * What one socket holds before anything is done with it: parts of a message that is not complete, and messages whose sender is being asked
 * for. Counted in the share of the person, once there is one. Where the platform does not show what arrives, only whole messages are counted.
 */
export class Arriving {
  readonly #limits: FullLimits
  readonly #refuse: Refuse
  #held: Held | undefined
  #owner: QuotaOwner
  /** Bytes of messages at work. */
  #atWork = 0
  /** At least the bytes of the message that is not complete, and what its chunks cost. */
  #unfinished = 0
  #overhead = 0
  /** What was left of the last complete message, and may be the beginning of the next. */
  #floor = 0
  #lastChunk = 0
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(limits: FullLimits, refuse: Refuse) {
    this.#limits = limits
    this.#refuse = refuse
    this.#held = takeArriving(undefined, SOCKET_BYTES, limits)
  }

  /** Whether the socket may stay. */
  get admitted(): boolean {
    return this.#held !== undefined
  }

  /** Bytes have come. */
  chunk(length: number): void {
    if (!this.#change(length + CHUNK_BYTES)) return
    this.#lastChunk = length
    this.#unfinished += length
    this.#overhead += CHUNK_BYTES
    this.#timer ??= setTimeout(() => this.#refuse('late'), this.#limits.arrivalTime)
  }

  /** A message is complete. What follows it in the same chunk is not known, so all of the chunk stays counted. */
  complete(): void {
    this.#floor = Math.min(this.#unfinished, this.#lastChunk)
    this.#settle()
  }

  /** A ping or a pong has come; it is no part of a message, though it may come in the middle of one. */
  control(payload: number): void {
    this.#unfinished -= payload + CONTROL_BYTES
    this.#held?.grow(-payload - CONTROL_BYTES)
    if (this.#unfinished <= this.#floor) this.#settle()
  }

  /** A message is at work. The function that comes back ends that; nothing where there is no room for it. */
  work(size: number): (() => void) | undefined {
    if (!this.#change(size)) return undefined
    this.#atWork += size
    let done = false
    return () => {
      if (done) return
      done = true
      this.#atWork -= size
      this.#held?.grow(-size)
    }
  }

  /** It is known whose socket it is. */
  known(owner: QuotaOwner): void {
    if (owner === undefined || this.#owner !== undefined || this.#held === undefined) return
    this.#owner = owner
    this.#held.release()
    this.#held = takeArriving(
      owner,
      SOCKET_BYTES + this.#atWork + this.#unfinished + this.#overhead,
      this.#limits,
    )
    if (this.#held === undefined) this.#refuse('no-room')
  }

  /** The socket has gone. */
  end(): void {
    clearTimeout(this.#timer)
    this.#held?.release()
    this.#held = undefined
  }

  /** No message is unfinished, but for what may be in the floor. */
  #settle(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#held?.grow(this.#floor - this.#unfinished - this.#overhead)
    this.#unfinished = this.#floor
    this.#overhead = 0
  }

  #change(size: number): boolean {
    if (this.#held?.grow(size)) return true
    this.#refuse('no-room')
    return false
  }
}
