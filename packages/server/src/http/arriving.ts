import type { FullLimits } from '../limits.js'
import { type Held, type QuotaOwner, takeArriving } from './quota.js'

/** The connection under a socket, if the platform exposes it, as node:http does. */
export interface Wire {
  /** Runs before the socket's own listener: a chunk is counted before it becomes a message. */
  prependListener(event: 'data', listener: (chunk: Uint8Array) => void): unknown
  removeAllListeners(event: 'data'): unknown
  resume(): unknown
}

type Refuse = (why: 'no-room' | 'late') => void

/** The cost of an idle socket. */
const SOCKET_BYTES = 16 * 1024
/** The cost of a chunk besides its bytes. */
const CHUNK_BYTES = 256
/** Bytes of a client's ping or pong besides its payload. */
const CONTROL_BYTES = 6

/**
 * What one socket holds: parts of an incomplete message, messages whose sender is being determined, and what waits to be sent. Counted in the
 * user's share, once there is a user. If the platform does not expose the connection, only whole messages are counted of what arrives.
 */
export class Arriving {
  #held: Held | undefined
  #owner: QuotaOwner
  #counted = SOCKET_BYTES
  #atWork = 0
  #unsent = 0
  /** An upper bound for the bytes of the incomplete message, and the cost of its chunks. */
  #unfinished = 0
  #overhead = 0
  /** What was left of the last complete message, and may be the start of the next. */
  #floor = 0
  #lastChunk = 0
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(
    private readonly limits: FullLimits,
    private readonly refuse: Refuse,
  ) {
    this.#held = takeArriving(undefined, SOCKET_BYTES, limits)
  }

  /** Whether the socket may stay open. */
  get admitted(): boolean {
    return this.#held !== undefined
  }

  chunk(length: number): void {
    this.#lastChunk = length
    this.#unfinished += length
    this.#overhead += CHUNK_BYTES
    if (this.#count()) this.#timer ??= setTimeout(() => this.refuse('late'), this.limits.arrivalTime)
  }

  /** A message is complete. How much of the last chunk belongs to the next one is unknown, so all of the chunk stays counted. */
  complete(): void {
    this.#floor = Math.min(this.#unfinished, this.#lastChunk)
    this.#settle()
  }

  /** A ping or a pong has arrived. It is not part of a message, even if it arrives in the middle of one. */
  control(payload: number): void {
    this.#unfinished -= payload + CONTROL_BYTES
    if (this.#unfinished <= this.#floor) this.#settle()
    else this.#count()
  }

  /** A message is in progress until the returned function is called. Returns undefined if there is no room for it. */
  work(size: number): (() => void) | undefined {
    this.#atWork += size
    if (!this.#count()) return undefined
    let more = size
    return () => {
      this.#atWork -= more
      more = 0
      this.#count()
    }
  }

  /** Sets how much waits to be sent. */
  unsent(size: number): void {
    this.#unsent = size
    this.#count()
  }

  /** The socket's user is known from now on. */
  known(owner: QuotaOwner): void {
    if (owner === undefined || this.#owner !== undefined || this.#held === undefined) return
    this.#owner = owner
    this.#held.release()
    this.#counted = this.#size
    this.#held = takeArriving(owner, this.#counted, this.limits)
    if (this.#held === undefined) this.refuse('no-room')
  }

  end(): void {
    clearTimeout(this.#timer)
    this.#held?.release()
    this.#held = undefined
  }

  /** No message is incomplete, except for what the floor may contain. */
  #settle(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#unfinished = this.#floor
    this.#overhead = 0
    this.#count()
  }

  get #size(): number {
    return SOCKET_BYTES + this.#atWork + this.#unsent + this.#unfinished + this.#overhead
  }

  /** Counts all of it. Returns whether there was room. */
  #count(): boolean {
    const more = this.#size - this.#counted
    if (!this.#held?.grow(more)) {
      this.refuse('no-room')
      return false
    }
    this.#counted += more
    return true
  }
}
