import { isRecord, type ServerFrame } from '@countersign/core'
import { checkOptions } from '../encoding/check-options.js'
import { sleep } from '../encoding/signals.js'
import { exceeds, type FullLimits } from '../limits.js'
import type { Agent } from '../run/agent.js'
import type { LoggedEvent } from '../run-log/run-log.js'
import { readerTooSlow } from '../scope/channel.js'
import { type Holder, newSocket, type RunContext, runKey, subjectOf } from '../scope/run-context.js'
import { deliverAnswers, readLiveAnswers } from './answer.js'
import { Arriving, type Wire } from './arriving.js'
import { describeRejection } from './http.js'
import { bytesHeldBy } from './quota.js'
import { readersOf } from './readers.js'
import { openReplay, readRejoin } from './rejoin.js'
import { checkOrigin, handlerRules, type OriginRule } from './route-rules.js'
import { checkId, invalid, parseBody, readParsedInput, tooMany } from './run-input.js'
import { KEEP_ALIVE_MS } from './sse.js'
import { startRun } from './start-run.js'

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

export interface SocketOptions extends OriginRule {
  /**
   * What the application knows about the sender: `subject`, and services for tools. Called once when the socket opens, without headers, so
   * that everything counts in the user's share from the start; then for every frame that requests something, with the headers that the
   * client sent in the frame. The application already has the request that opened the socket (with its cookies).
   */
  readonly context?:
    | ((headers: Readonly<Record<string, string>>) => RunContext | Promise<RunContext>)
    | undefined
  /** Milliseconds that a run continues, to be rejoined, after its last socket in this process broke. Needs a subject. Default 0. */
  readonly goOnFor?: number | undefined
  /** Milliseconds between two signs of life to a reader: frames without events. Default 15,000. */
  readonly keepAlive?: number | undefined
  /** How many runs may be open on one socket. Default 16. */
  readonly maxRuns?: number | undefined
}

const OPEN = 1
const POLICY_VIOLATION = 1008
const TRY_AGAIN_LATER = 1013
/** Bytes that may wait in the socket before the run must wait. */
const HIGH_WATER = 1024 * 1024
/** Milliseconds between two checks of what waits in the socket. */
const POLL_MS = 20

/** Ended runs that one socket may keep until their last frames have left. */
const MAX_UNSENT = 16
/** Bytes of messages and replies that a reader with more than {@link HIGH_WATER} unread may cause. Beyond that its socket is closed. */
const MAX_UNREAD = 1024 * 1024

/**
 * Serves runs over an open WebSocket, as requested by `webSocket` of `@countersign/client/web-socket`; the frames are
 * `ClientFrame` and `ServerFrame` of core. A run stays open while the user decides and takes the answers that arrive meanwhile. `stop`
 * ends it at once, a broken socket after `goOnFor`. Pages of other origins are rejected unless `origins` names them. Without a
 * subject, runs belong to their socket: no other can rejoin or answer them.
 *
 * Closes with 1008 if the rules are broken (the reason is a code: `origin`, `invalid-request`, `request-too-large`; `too-many-requests` for a
 * reader that reads nothing but keeps requesting), and with 1013 if there is no room for what arrives (`too-many-requests`). Until a
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
interface Opened {
  readonly origin: string | null | undefined
  readonly host: string | null | undefined
}

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
  for (const type of ['ping', 'pong'] as const) socket.on?.(type, ({ length }) => peer.control(length))
  peer.open(opened)
}

/** Bytes that a socket may still send after it was told to close. */
const MAX_IGNORED = 64 * 1024

const NO_ROOM = 'Too much is arriving at once. Open the socket again later.'
const NOT_READ = 'Replies are not read.'

/** A run on a socket. */
interface OpenRun {
  readonly id: string
  /** Aborted when nobody reads it here any more. */
  readonly gone: AbortController
  /** Answers whose reply has not been sent yet. */
  readonly replies: Set<Promise<void>>
  /** Stops the run itself, which might otherwise continue without a reader. */
  stop(): void
}

class Peer {
  readonly #self = newSocket()
  readonly #runs = new Map<string, OpenRun>()
  /** Those that have ended, and whose last frame waits in the socket. */
  readonly #unsent = new Set<OpenRun>()
  readonly #arriving: Arriving
  /** Aborted when the socket has closed. */
  readonly #gone = new AbortController()
  /** Nothing more is accepted from this socket. */
  #closed = false
  /** Bytes that have arrived since it was closed. */
  #ignored = 0
  /** Bytes of messages and replies since its reader has had too much unread. */
  #unread = 0

  constructor(
    private readonly agent: Agent,
    private readonly socket: ServerSocket,
    private readonly options: SocketOptions,
    private readonly wire: Wire | undefined,
  ) {
    this.#arriving = new Arriving(agent.limits, (why) =>
      why === 'late'
        ? this.#refuse(invalid(`A message did not arrive within ${agent.limits.arrivalTime} ms.`))
        : this.#refuse(tooMany('too-many-requests', NO_ROOM), TRY_AGAIN_LATER),
    )
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

  /** A ping or a pong has arrived. */
  control(payload: number): void {
    this.#arriving.control(payload)
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
          return await this.#open(frame, done)
        case 'answer':
          return await this.#answer(frame)
        case 'stop':
          return this.#stop(frame.runId)
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
    for (const run of this.#runs.values()) this.#leave(run)
  }

  /** Bytes of any kind have arrived. */
  #hear(length: number): void {
    if (!this.#closed) {
      this.#arriving.chunk(length)
      this.#countOutgoing(length)
      return
    }
    // Told to close, the peer still sends more than a goodbye: its data is dropped, and the connection ends when the socket's close
    // times out. Ending it here would discard what the peer has not read, including the reason.
    this.#ignored += length
    if (this.#ignored < MAX_IGNORED) return
    this.wire?.removeAllListeners('data')
    this.wire?.resume()
  }

  /** Counts what this socket causes to be sent. A peer may stop reading, but then it must stop requesting. */
  #countOutgoing(length: number): void {
    if ((this.socket.bufferedAmount ?? 0) <= HIGH_WATER) this.#unread = 0
    else this.#unread += length
    if (this.#unread > MAX_UNREAD) this.#refuse(tooMany('too-many-requests', NOT_READ))
  }

  /** Sends the reason, and closes the socket. */
  #refuse(error: unknown, closeCode = POLICY_VIOLATION, reason?: string): void {
    if (this.#closed) return
    this.#closed = true
    const { code, message } = describeRejection(this.agent, error)
    const frame: ServerFrame = { type: 'error', code, message }
    try {
      if (this.socket.readyState === OPEN) this.socket.send(JSON.stringify(frame))
      this.socket.close(closeCode, reason ?? code)
    } catch {
      // It is already closed.
    }
    for (const run of this.#runs.values()) this.#leave(run)
  }

  #leave(run: OpenRun): void {
    this.#runs.delete(run.id)
    run.gone.abort()
  }

  async #open(frame: Untrusted, begun: () => void): Promise<void> {
    const { input } = frame
    // Replies repeat it, so it must have the length of an id.
    const id = checkId(
      'runId',
      frame.type === 'run' && isRecord(input) ? input.runId : frame.runId,
      this.agent.limits,
    )
    if (this.#runs.has(id)) throw invalid('A run needs an id that no other has.')
    const { maxRuns = 16 } = this.options
    if (this.#runs.size >= maxRuns) {
      const message = `A socket has at most ${maxRuns} runs at a time.`
      return this.#send({ type: 'error', runId: id, code: 'too-many-runs', message })
    }
    const run: OpenRun = { id, gone: new AbortController(), replies: new Set(), stop: () => {} }
    this.#runs.set(id, run)
    try {
      await (frame.type === 'run' ? this.#run(run, frame, begun) : this.#rejoin(run, frame, begun))
      // Answers that the run has taken are confirmed before its end.
      await Promise.all(run.replies)
      if (!run.gone.signal.aborted) this.#send({ type: 'end', runId: id })
    } catch (error) {
      const { aborted, reason } = run.gone.signal
      if (aborted && (error === reason || error === this.#gone.signal.reason)) return
      const { code, message } = describeRejection(this.agent, error)
      if (!aborted) this.#send({ type: 'error', runId: id, code, message })
    } finally {
      this.#runs.delete(run.id)
      this.#leaveOnceSent(run)
    }
  }

  async #run(run: OpenRun, frame: Untrusted, begun: () => void): Promise<void> {
    const input = readParsedInput(frame.input, this.agent.limits)
    const context = await this.#context(frame, run.gone.signal)
    begun()
    if (run.gone.signal.aborted) return
    const { goOnFor } = this.options
    const stopped = new AbortController()
    run.stop = () => stopped.abort()
    const { signal: gone } = run.gone
    const own = { holder: this.#holder(context), stopped: stopped.signal }
    const { events } = await startRun(this.agent, input, { context, live: true, goOnFor }, gone, own)
    const leave = () => void events.return?.()
    if (gone.aborted) leave()
    else gone.addEventListener('abort', leave, { once: true })
    await this.#write(run, events)
  }

  async #rejoin(run: OpenRun, frame: Untrusted, begun: () => void): Promise<void> {
    const request = readRejoin(this.agent, frame.threadId, run.id, frame.lastEventId)
    // Also for a run that is stopped before: it must be known which.
    const asked = this.#context(frame, this.#gone.signal).then((context) => this.#holder(context))
    const key = (holder: Holder) => runKey(holder, request.threadId, run.id)
    run.stop = () => void asked.then((holder) => readersOf.get(key(holder))?.stop()).catch(() => {})
    const holder = await asked
    begun()
    const events = await openReplay(this.agent, holder, request, run.gone.signal)
    if (events === undefined) return
    // A run in the middle of a long call may say nothing for a while.
    this.#send({ type: 'events', runId: run.id, events: [] })
    await this.#write(run, events)
  }

  #stop(id: unknown): void {
    const run = this.#runs.get(checkId('runId', id, this.agent.limits))
    if (run === undefined) return
    run.stop()
    this.#leave(run)
  }

  async #answer(frame: Untrusted): Promise<void> {
    const id = checkId('The id of an answer', frame.id, this.agent.limits)
    const { runId } = frame
    const reply = this.#deliver(id, frame)
    const replies = typeof runId === 'string' ? this.#runs.get(runId)?.replies : undefined
    replies?.add(reply)
    await reply
    replies?.delete(reply)
  }

  async #deliver(id: string, frame: Untrusted): Promise<void> {
    try {
      const answers = readLiveAnswers(frame, this.agent.limits)
      const context = await this.#context(frame, this.#gone.signal)
      const delivery = await deliverAnswers(this.agent, this.#holder(context), answers, context)
      if (delivery.status === 'taken') return this.#send({ type: 'answered', id })
      this.#send({ type: 'refused', id, code: delivery.code, message: delivery.message })
    } catch (error) {
      if (this.#gone.signal.aborted) return
      const { code, message } = describeRejection(this.agent, error)
      this.#send({ type: 'refused', id, code, message })
    }
  }

  async #write({ id, gone }: OpenRun, batches: AsyncIterable<readonly LoggedEvent[]>): Promise<void> {
    const runId = JSON.stringify(id)
    const beat = () => this.#send({ type: 'events', runId: id, events: [] })
    const timer = setInterval(beat, this.options.keepAlive ?? KEEP_ALIVE_MS)
    try {
      for await (const batch of batches) {
        if (gone.signal.aborted) return
        const events = batch.map(({ data }) => data).join()
        const last = JSON.stringify(`${id}:${batch.at(-1)?.n}`)
        this.socket.send(`{"type":"events","runId":${runId},"events":[${events}],"id":${last}}`)
        await this.#untilSent(gone.signal)
      }
    } finally {
      clearInterval(timer)
    }
  }

  /** Waits while too much is in the socket. If the peer reads nothing for too long, its socket is closed, and it leaves all of its runs. */
  async #untilSent(gone: AbortSignal): Promise<void> {
    const { stallTime } = this.agent.limits
    let least = Number.POSITIVE_INFINITY
    for (let waited = 0; !gone.aborted; waited += POLL_MS) {
      const amount = this.socket.bufferedAmount ?? 0
      if (amount <= HIGH_WATER) return
      if (amount < least) waited = 0
      if (waited > stallTime) {
        this.socket.close(POLICY_VIOLATION, 'reader-too-slow')
        this.gone()
        throw readerTooSlow(`its socket took nothing for ${stallTime} ms`)
      }
      least = Math.min(least, amount)
      // Browsers' sockets don't report when they have sent what was waiting.
      await sleep(POLL_MS)
    }
  }

  /** A run counts as read once its last frame has left. A peer that reads nothing must not collect them. */
  #leaveOnceSent(run: OpenRun): void {
    if (this.#unsent.size >= MAX_UNSENT) {
      run.gone.abort()
      return
    }
    this.#unsent.add(run)
    if (this.#unsent.size > 1) return
    void this.#untilEmpty().then(() => {
      for (const { gone } of this.#unsent) gone.abort()
      this.#unsent.clear()
    })
  }

  /** Waits until nothing is in the socket, but not for a peer that reads nothing. */
  async #untilEmpty(): Promise<void> {
    const { stallTime } = this.agent.limits
    const isWaiting = () => this.socket.readyState === OPEN && (this.socket.bufferedAmount ?? 0) > 0
    for (let waited = 0; isWaiting() && waited < stallTime; waited += POLL_MS) await sleep(POLL_MS)
  }

  #send(frame: ServerFrame): void {
    if (this.socket.readyState !== OPEN) return
    const text = JSON.stringify(frame)
    this.#countOutgoing(text.length)
    if (!this.#closed) this.socket.send(text)
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

  #holder(context: RunContext | undefined): Holder {
    return subjectOf(context) ?? this.#self
  }
}

/** A frame of which only the type is validated. */
type Untrusted = { readonly type: string } & {
  readonly [Name in 'input' | 'id' | 'threadId' | 'runId' | 'lastEventId' | 'resume' | 'headers']?: unknown
}

/** @throws CountersignError `invalid-request`, `request-too-large` */
function readFrame(data: unknown, limits: FullLimits): Untrusted {
  if (typeof data !== 'string') throw invalid('A message must be text.')
  if (data.length > limits.bodyBytes) throw exceeds('bodyBytes', limits, ['A message', 'characters'])
  const frame = parseBody(data, limits)
  if (!isRecord(frame) || typeof frame.type !== 'string')
    throw invalid('A message must be a frame with a type.')
  // Drops everything else, so that it is not held as long as a run is open.
  const { type, input, id, threadId, runId, lastEventId, resume, headers } = frame
  return { type, input, id, threadId, runId, lastEventId, resume, headers }
}
