import { isRecord, type ServerFrame } from '@countersign/core'
import { checkOptions } from '../encoding/check-options.js'
import type { Agent } from '../run/agent.js'
import { type RunContext, subjectOf } from '../scope/run-context.js'
import { Arriving, type Wire } from './arriving.js'
import { readFrame } from './client-frame.js'
import { describeRejection } from './http.js'
import { Outgoing, type ServerSocket } from './outgoing.js'
import { bytesHeldBy } from './quota.js'
import { checkOrigin, handlerRules, type OriginRule } from './route-rules.js'
import { invalid, tooMany } from './run-input.js'
import { type SocketRunOptions, SocketRuns } from './socket-runs.js'

export interface SocketOptions extends OriginRule, SocketRunOptions {
  /**
   * What the application knows about the sender: `subject`, and services for tools. Called once when the socket opens, without headers, so
   * that everything counts in the user's share from the start; then for every frame that requests something, with the headers that the
   * client sent in the frame. The application already has the request that opened the socket (with its cookies).
   */
  readonly context?:
    | ((headers: Readonly<Record<string, string>>) => RunContext | Promise<RunContext>)
    | undefined
}

const POLICY_VIOLATION = 1008
const TRY_AGAIN_LATER = 1013
/** Bytes that a socket may still send after it was told to close. */
const MAX_IGNORED = 64 * 1024

const NO_ROOM = 'Too much is arriving, or waits to be read. Open the socket again later.'
const NOT_READ = 'Replies are not read.'

/**
 * Serves runs over an open WebSocket, as requested by `webSocket` of `@countersign/client/web-socket`; the frames are
 * `ClientFrame` and `ServerFrame` of core. A run stays open while the user decides and takes the answers that arrive meanwhile. `stop`
 * ends it at once, a broken socket after `goOnFor`. Pages of other origins are rejected unless `origins` names them. Without a
 * subject, runs belong to their socket: no other can rejoin or answer them.
 *
 * Closes with 1008 if the rules are broken (the reason is a code: `origin`, `invalid-request`, `request-too-large`; `too-many-requests` for a
 * reader that reads nothing but keeps requesting), and with 1013 if there is no room for what arrives or waits to be read (`too-many-requests`). Until a
 * message is complete, only the platform's socket can limit it: set its message limit to 4 MiB.
 *
 * @param opened The request that opened the socket.
 * @throws CountersignError `invalid-option`
 */
export function serveSocket(
  agent: Agent,
  socket: ServerSocket,
  opened: Request,
  options: SocketOptions = {},
): void {
  checkOptions('serveSocket', options, handlerRules)
  const host = opened.headers.get('host') ?? new URL(opened.url).host
  openSocket(agent, socket, { origin: opened.headers.get('origin'), host }, options)
}

/** What is checked of the request that opened a socket. */
type Opened = Readonly<Record<'origin' | 'host', string | null | undefined>>

/** {@link serveSocket}, for requests of any kind. */
export function openSocket(
  agent: Agent,
  socket: ServerSocket,
  opened: Opened,
  options: SocketOptions,
  wire?: Wire,
): void {
  const peer = new Peer(agent, socket, options, wire)
  // First, even for a socket that will be rejected: an unhandled error event ends the process.
  socket.addEventListener('error', () => peer.gone())
  socket.addEventListener('close', () => peer.gone())
  socket.addEventListener('message', ({ data }) => void peer.receive(data))
  for (const type of ['ping', 'pong'] as const) socket.on?.(type, ({ length }) => peer.control(type, length))
  peer.open(opened)
}

/** Who is at the other end: what comes from there, until it is told to go. */
class Peer {
  readonly #arriving: Arriving
  readonly #out: Outgoing
  readonly #runs: SocketRuns
  /** Aborted when the socket has closed. */
  readonly #gone = new AbortController()
  /** Nothing more is accepted from this socket. */
  #closed = false
  /** Bytes that have arrived since it was closed. */
  #ignored = 0

  constructor(
    private readonly agent: Agent,
    private readonly socket: ServerSocket,
    private readonly options: SocketOptions,
    private readonly wire: Wire | undefined,
  ) {
    const { arrivalTime, stallTime } = agent.limits
    this.#arriving = new Arriving(agent.limits, (why) =>
      why === 'late'
        ? this.#refuse(invalid(`A message did not arrive within ${arrivalTime} ms.`))
        : this.#refuse(tooMany('too-many-requests', NO_ROOM), TRY_AGAIN_LATER),
    )
    const hold = (size: number) => this.#arriving.unsent(size)
    this.#out = new Outgoing(socket, stallTime, this.#gone.signal, hold, (why) =>
      why === 'unread'
        ? this.#refuse(tooMany('too-many-requests', NOT_READ))
        : this.#close(POLICY_VIOLATION, 'reader-too-slow'),
    )
    const context = this.#context.bind(this)
    this.#runs = new SocketRuns(agent, options, this.#out, this.#gone.signal, context)
  }

  /** The socket was opened by this request. */
  open({ origin, host }: Opened): void {
    this.wire?.prependListener('data', (chunk) => this.#hear(chunk.length))
    try {
      checkOrigin(origin, host, this.options)
    } catch (error) {
      this.#refuse(error, POLICY_VIOLATION, 'origin')
      return
    }
    if (!this.#arriving.admitted) {
      this.#refuse(tooMany('too-many-requests', NO_ROOM), TRY_AGAIN_LATER)
      return
    }
    // If the opening request does not identify the user, the frames may.
    this.#context({}, this.#gone.signal).catch(() => {})
  }

  /** A ping, which the socket has answered, or a pong has arrived. */
  control(type: 'ping' | 'pong', payload: number): void {
    this.#arriving.control(payload)
    if (type === 'ping') this.#out.replied(payload)
  }

  /** Handles one message. Anything but a frame closes the socket: its sender uses another protocol. */
  async receive(data: unknown): Promise<void> {
    this.#arriving.complete()
    if (this.#closed) return
    let done: (() => void) | undefined
    try {
      const frame = readFrame(data, this.agent.limits)
      done = this.#arriving.work(bytesHeldBy(frame))
      if (done === undefined) return
      switch (frame.type) {
        case 'run':
        case 'rejoin':
          return await this.#runs.open(frame, done)
        case 'answer':
          return await this.#runs.answer(frame)
        case 'stop':
          return this.#runs.stop(frame.runId)
        default:
          // A frame type that a later version may have added.
          return
      }
    } catch (error) {
      this.#refuse(error)
    } finally {
      done?.()
    }
  }

  /** The socket has closed. */
  gone(): void {
    this.#closed = true
    this.#gone.abort()
    this.#arriving.end()
    this.#runs.leave()
  }

  /** Bytes of any kind have arrived. */
  #hear(length: number): void {
    if (!this.#closed) {
      this.#arriving.chunk(length)
      return
    }
    // Told to close, the peer still sends more than a goodbye: its data is dropped, and the connection ends when the socket's close
    // times out. Ending it here would discard what the peer has not read, including the reason.
    this.#ignored += length
    if (this.#ignored < MAX_IGNORED) return
    this.wire?.removeAllListeners('data')
    this.wire?.resume()
  }

  /** Sends the reason, and closes the socket. */
  #refuse(error: unknown, closeCode = POLICY_VIOLATION, reason?: string): void {
    if (this.#closed) return
    const { status, code, message } = describeRejection(this.agent, error)
    this.#close(closeCode, reason ?? code, { type: 'error', status, code, message })
  }

  #close(code: number, reason: string, last?: ServerFrame): void {
    if (this.#closed) return
    this.#closed = true
    try {
      if (last) this.#out.reply(last)
      this.socket.close(code, reason)
    } catch {
      // It is already closed.
    }
    this.#runs.leave()
  }

  async #context(
    { headers }: { readonly headers?: unknown },
    gone: AbortSignal,
  ): Promise<RunContext | undefined> {
    const given = isRecord(headers) ? Object.entries(headers) : []
    const texts = given.flatMap(([name, value]) =>
      typeof value === 'string' ? [[name.toLowerCase(), value] as const] : [],
    )
    const { context: ask } = this.options
    const context = ask && (await this.agent.callHook(() => ask(Object.fromEntries(texts)), gone))
    this.#arriving.known(subjectOf(context)?.id)
    return context
  }
}
