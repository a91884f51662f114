import type { ServerFrame } from '@countersign/core'
import { sleep, untilWoken, wakeAll } from '../encoding/signals.js'

/** The parts of `WebSocket` that are used. Sockets of the platforms and of the package `ws` fit. */
export interface ServerSocket {
  readonly readyState: number
  /** Bytes that were passed to `send` and not transmitted yet. */
  readonly bufferedAmount?: number
  send(data: string): void
  close(code?: number, reason?: string): void
  addEventListener(type: 'message', listener: (event: { readonly data: unknown }) => void): void
  addEventListener(type: 'close' | 'error', listener: () => void): void
  /** Reports control frames, if the socket does. */
  on?(type: 'ping' | 'pong', listener: (data: { readonly length: number }) => void): unknown
}

const OPEN = 1
/** Bytes that may wait in the socket before its runs must wait. */
const HIGH_WATER = 1024 * 1024
/** Bytes of messages and replies that a reader with more than {@link HIGH_WATER} unread may cause. */
const MAX_UNREAD = 1024 * 1024
/** Ended runs that are kept until nothing waits. */
const MAX_ENDED = 16
/** Milliseconds between two looks at what waits, and at most that if the peer takes nothing. */
const POLL_MS = 20
const MAX_POLL_MS = 1000

/** What a socket is sent, and what of it waits there. */
export class Outgoing {
  /** Bytes of messages and replies since its reader has had too much unread. */
  #unread = 0
  /** The least that has waited, plus what was sent since: if there is less, the peer has taken something. */
  #least = Number.POSITIVE_INFINITY
  #isWatched = false
  readonly #waiting = new Set<() => void>()
  #ended: (() => void)[] = []

  /**
   * @param gone Aborted when the socket has closed.
   * @param refuse Closes the socket, for a peer that reads nothing but keeps requesting, or has taken nothing for `stallTime`.
   */
  constructor(
    private readonly socket: ServerSocket,
    private readonly stallTime: number,
    private readonly gone: AbortSignal,
    private readonly refuse: (why: 'unread' | 'stalled') => void,
  ) {}

  send(frame: ServerFrame): void {
    const text = JSON.stringify(frame)
    this.caused(text.length)
    this.#put(text)
  }

  /** Sends events. Waits while too much is in the socket, unless the reader of the run has left. */
  async sendEvents(text: string, left: AbortSignal): Promise<void> {
    this.#put(text)
    while (this.#amount > HIGH_WATER && !left.aborted) await untilWoken(this.#waiting, left)
  }

  /** The peer has caused so many bytes. It may stop reading, but then it must stop requesting. */
  caused(length: number): void {
    if (this.#amount <= HIGH_WATER) this.#unread = 0
    else this.#unread += length
    if (this.#unread > MAX_UNREAD) this.refuse('unread')
  }

  /** Calls `act` once nothing waits: then a run that has ended was read. A peer that reads nothing must not collect them. */
  onceSent(act: () => void): void {
    if (this.#amount === 0 || this.#ended.length >= MAX_ENDED) act()
    else this.#ended.push(act)
  }

  get #amount(): number {
    return this.socket.readyState === OPEN ? (this.socket.bufferedAmount ?? 0) : 0
  }

  #put(text: string): void {
    if (this.socket.readyState !== OPEN) return
    const before = this.#amount
    this.socket.send(text)
    this.#least += this.#amount - before
    if (!this.#isWatched && this.#amount > 0) void this.#watch()
  }

  /** Looks again and again until nothing waits: sockets don't report when they have sent it. */
  async #watch(): Promise<void> {
    this.#isWatched = true
    let quiet = 0
    for (let amount = this.#amount; amount > 0; amount = this.#amount) {
      this.#least = Math.min(this.#least, amount)
      const pause = Math.min(Math.max(POLL_MS, quiet / 8), MAX_POLL_MS)
      await sleep(pause, this.gone)
      quiet = this.#amount < this.#least ? 0 : quiet + pause
      if (quiet === 0) wakeAll(this.#waiting)
      if (quiet <= this.stallTime) continue
      this.refuse('stalled')
      break
    }
    this.#isWatched = false
    this.#least = Number.POSITIVE_INFINITY
    wakeAll(this.#waiting)
    const ended = this.#ended
    this.#ended = []
    for (const act of ended) act()
  }
}
