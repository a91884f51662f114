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
/** The cost of a frame that waits, besides its bytes. */
const FRAME_BYTES = 512
/** What may wait before the runs of the socket must wait. */
const HIGH_WATER = 1024 * 1024
/** What may wait of replies. A peer may stop reading, but then it must stop requesting. */
const MAX_REPLIES = 1024 * 1024
/** What of it counts for the user. Longer events count in the share of replies. */
const MOST_HELD = HIGH_WATER + MAX_REPLIES
/** Ended runs that are kept until nothing waits. */
const MAX_ENDED = 16
/** Milliseconds between two looks at what waits; the longer, the longer the peer has taken nothing. */
const POLL_MS = 20
const MAX_POLL_MS = 100

/** What a socket is sent, and what of it waits there. Sizes are bytes in memory, at most about. */
export class Outgoing {
  /** Frames since nothing waited, and the size of the replies among them. */
  #frames = 0
  #replies = 0
  /** The least bytes that have waited, plus what was sent since: if there are less, the peer has taken something. */
  #least = Number.POSITIVE_INFINITY
  #isWatched = false
  readonly #waiting = new Set<() => void>()
  #ended: (() => void)[] = []

  /**
   * @param gone Aborted when the socket has closed.
   * @param hold Counts what waits now.
   * @param refuse Closes the socket, for a peer that reads nothing but keeps requesting, or has taken nothing for `stallTime`.
   */
  constructor(
    private readonly socket: ServerSocket,
    private readonly stallTime: number,
    private readonly gone: AbortSignal,
    private readonly hold: (size: number) => void,
    private readonly refuse: (why: 'unread' | 'stalled') => void,
  ) {}

  /** Sends what the peer has requested. */
  reply(frame: ServerFrame): void {
    const text = JSON.stringify(frame)
    this.#put(text)
    this.replied(text.length)
  }

  /** A frame of so many bytes was sent, because the peer has requested it. */
  replied(length: number): void {
    this.#replies += length + FRAME_BYTES
    this.#sent()
    if (this.#replies > MAX_REPLIES) this.refuse('unread')
  }

  /** Sends events. Waits while too much is in the socket, unless the reader of the run has left. */
  async sendEvents(text: string, left: AbortSignal): Promise<void> {
    this.#put(text)
    this.#sent()
    while (this.#size > HIGH_WATER && !left.aborted) await untilWoken(this.#waiting, left)
  }

  /** Sends a sign of life, unless something else is on its way. */
  beat(frame: ServerFrame): void {
    if (this.#bytes === 0) this.reply(frame)
  }

  /** Calls `act` once nothing waits: then a run that has ended was read. A peer that reads nothing must not collect them. */
  onceSent(act: () => void): void {
    if (this.#bytes === 0 || this.#ended.length >= MAX_ENDED) act()
    else this.#ended.push(act)
  }

  get #bytes(): number {
    return this.socket.readyState === OPEN ? (this.socket.bufferedAmount ?? 0) : 0
  }

  get #size(): number {
    const bytes = this.#bytes
    return bytes === 0 ? 0 : bytes + this.#frames * FRAME_BYTES
  }

  #put(text: string): void {
    if (this.socket.readyState !== OPEN) return
    const before = this.#bytes
    if (before === 0) this.#emptied()
    this.socket.send(text)
    this.#least += this.#bytes - before
  }

  #sent(): void {
    this.#frames++
    if (this.#bytes === 0) this.#emptied()
    else {
      this.hold(Math.min(this.#size, MOST_HELD))
      if (!this.#isWatched) void this.#watch()
    }
  }

  /** Looks again and again until nothing waits: sockets don't report when they have sent it. */
  async #watch(): Promise<void> {
    this.#isWatched = true
    for (let quiet = 0; this.#bytes > 0 && quiet <= this.stallTime; ) {
      this.#least = Math.min(this.#least, this.#bytes)
      const pause = Math.min(Math.max(POLL_MS, quiet / 8), MAX_POLL_MS)
      await sleep(pause, this.gone)
      quiet = this.#bytes < this.#least ? 0 : quiet + pause
      if (quiet === 0) wakeAll(this.#waiting)
    }
    this.#isWatched = false
    if (this.#bytes > 0) this.refuse('stalled')
    this.#emptied()
  }

  /** Nothing waits any more, or nobody takes it. */
  #emptied(): void {
    if (this.#frames === 0) return
    this.#frames = 0
    this.#replies = 0
    this.#least = Number.POSITIVE_INFINITY
    if (this.socket.readyState === OPEN) this.hold(0)
    wakeAll(this.#waiting)
    for (const act of this.#ended.splice(0)) act()
  }
}
