import { isRecord, type ServerFrame } from '@countersign/core'
import { MAX_BODY_BYTES } from '../limits.js'
import type { Agent } from '../run/agent.js'
import type { LoggedEvent } from '../run-log/run-log.js'
import { MAX_STALL, readerTooSlow } from '../scope/channel.js'
import type { RunContext } from '../scope/run-context.js'
import { deliverAnswers, readLiveAnswers } from './answer.js'
import { Arriving, type Wire } from './arriving.js'
import { type Holder, newSocket, ownerOf, runKey, subjectOf } from './holder.js'
import { describeRejection } from './http.js'
import { checkOrigin, type OriginRule } from './origin.js'
import { bytesHeldBy, takeRun } from './quota.js'
import { readersOf } from './readers.js'
import { openReplay, readRejoin } from './rejoin.js'
import { checkId, invalid, parseBody, readParsedInput, tooLarge, tooMany } from './run-input.js'
import { serveRun } from './serve-run.js'

/** What is used of a `WebSocket`; those of the platforms, and that of the package `ws`, fit as they are. */
export interface ServerSocket {
  readonly readyState: number
  /** Bytes that were sent and have not left yet. */
  readonly bufferedAmount?: number
  send(data: string): void
  close(code?: number, reason?: string): void
  addEventListener(type: 'message', listener: (event: { readonly data: unknown }) => void): void
  addEventListener(type: 'close' | 'error', listener: () => void): void
  /** Tells of control frames, where the socket does. */
  on?(type: 'ping' | 'pong', listener: (data: { readonly length: number }) => void): unknown
}

export interface SocketOptions extends OriginRule {
  /**
   * What the application knows of the speaker: `subject`, and services for tools. Asked once when the socket opens, without headers, so
   * that what arrives counts as this person's from the start; then for every frame that wants something, with the headers the client
   * sent in it. What the socket itself was opened with (a cookie) the application has already.
   */
  readonly context?:
    | ((headers: Readonly<Record<string, string>>) => RunContext | Promise<RunContext>)
    | undefined
  /** Milliseconds that a run goes on after the last socket of this process that reads it broke, to be taken up. Needs a subject. Default 0. */
  readonly goOnFor?: number | undefined
  /** Runs that may be open on one socket. Default 16. */
  readonly maxRuns?: number | undefined
}

const OPEN = 1
const POLICY_VIOLATION = 1008
const TRY_AGAIN_LATER = 1013
/** Bytes that may wait in the socket before the run is asked to wait. */
const HIGH_WATER = 1024 * 1024
/** Milliseconds between two looks at what waits in the socket. */
const POLL_MS = 20
/** Bytes of replies, and of messages, for a reader that has more than {@link HIGH_WATER} unread. Then its socket is closed. */
const MAX_UNREAD = 1024 * 1024

/**
 * Serves runs over a WebSocket that is open, as `webSocket` of `@countersign/client/web-socket` asks for them; the frames are
 * `ClientFrame` and `ServerFrame` of core. A run stays open while a person decides and takes the answers that come meanwhile. `stop`
 * ends it at once, a socket that breaks after `goOnFor`. Pages of another origin are turned away unless `origins` names them. Without a
 * subject, runs belong to their socket: no other takes them up or answers.
 *
 * Closes with 1008 what breaks the rules (the reason is a code: `origin`, `invalid-request`, `request-too-large`; `too-many-requests` for a
 * reader that takes nothing and goes on asking), with 1013 where there is no room for what arrives (`too-many-requests`). Until a
 * message is complete only the platform's socket can bound it: set its limit for a message to 4 MiB.
 *
 * @param opened The request that opened the socket.
 */
export function serveSocket(
  agent: Agent,
  socket: ServerSocket,
  opened: Request,
  options: SocketOptions = {},
): void {
  const host = opened.headers.get('host') ?? new URL(opened.url).host
  openSocket(agent, socket, { origin: opened.headers.get('origin'), host }, options)
}

/** What is told of the request that opened a socket. */
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
  // first of all, also for a socket that is refused: an error that nobody hears ends the process
  socket.addEventListener('error', () => peer.gone())
  socket.addEventListener('close', () => peer.gone())
  socket.addEventListener('message', ({ data }) => void peer.receive(data))
  for (const type of ['ping', 'pong'] as const) socket.on?.(type, ({ length }) => peer.control(length))
  peer.open(opened)
}

/** Bytes that a socket may send after it was told to go. */
const MAX_IGNORED = 64 * 1024

const NO_ROOM = 'Too much is arriving at once. Open the socket again later.'
const NOT_READ = 'Replies are not read.'

/** A run on a socket. */
interface OpenRun {
  readonly id: string
  /** Aborted once nobody reads it here any more. */
  readonly gone: AbortController
  /** Answers whose reply has not gone out. */
  readonly replies: Set<Promise<void>>
  /** Stops the run itself, which may go on without a reader. */
  stop(): void
}

class Peer {
  readonly #agent: Agent
  readonly #socket: ServerSocket
  readonly #options: SocketOptions
  readonly #wire: Wire | undefined
  readonly #self = newSocket()
  readonly #runs = new Map<string, OpenRun>()
  readonly #arriving: Arriving
  /** Nothing more is taken from this socket. */
  #closed = false
  /** Bytes that came since then. */
  #ignored = 0
  /** Bytes of replies and messages since its reader has had too much unread. */
  #unread = 0

  constructor(agent: Agent, socket: ServerSocket, options: SocketOptions, wire: Wire | undefined) {
    this.#agent = agent
    this.#socket = socket
    this.#options = options
    this.#wire = wire
    this.#arriving = new Arriving(agent.limits, (why) =>
      why === 'late'
        ? this.#refuse(invalid(`A message did not arrive within ${agent.limits.arrivalTime} ms.`))
        : this.#refuse(tooMany('too-many-requests', NO_ROOM), TRY_AGAIN_LATER),
    )
  }

  /** The socket was opened by this request. */
  open({ origin, host }: Opened): void {
    this.#wire?.prependListener('data', (chunk) => this.#hear(chunk.length))
    try {
      checkOrigin(origin, host, this.#options)
    } catch (error) {
      this.#refuse(error, POLICY_VIOLATION, 'origin')
      return
    }
    if (!this.#arriving.admitted) {
      this.#refuse(tooMany('too-many-requests', NO_ROOM), TRY_AGAIN_LATER)
      return
    }
    // who cannot be told by the opening alone will be told by the frames
    this.#context({}).catch(() => {})
  }

  /** A ping or a pong came. */
  control(payload: number): void {
    this.#arriving.control(payload)
  }

  /** One message. What is no frame ends the socket: its sender speaks something else. */
  async receive(data: unknown): Promise<void> {
    this.#arriving.complete()
    if (this.#closed) return
    let done: (() => void) | undefined
    try {
      const frame = readFrame(data)
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
          // a type of frame that a later version may have added
          return
      }
    } catch (error) {
      this.#refuse(error)
    } finally {
      done?.()
    }
  }

  /** The socket has gone. */
  gone(): void {
    this.#closed = true
    this.#arriving.end()
    for (const run of this.#runs.values()) this.#leave(run)
  }

  /** Bytes came, whatever they are. */
  #hear(length: number): void {
    if (!this.#closed) {
      this.#arriving.chunk(length)
      this.#owe(length)
      return
    }
    // it was told to go, and sends more than a farewell: nobody keeps that, and the connection ends with the socket's patience. To end it
    // here would take away what the peer has not read, the reason of its end among it
    this.#ignored += length
    if (this.#ignored < MAX_IGNORED) return
    this.#wire?.removeAllListeners('data')
    this.#wire?.resume()
  }

  /** What this socket is sent for what it said. It need not read, but then it may not go on asking. */
  #owe(length: number): void {
    if ((this.#socket.bufferedAmount ?? 0) <= HIGH_WATER) this.#unread = 0
    else this.#unread += length
    if (this.#unread > MAX_UNREAD) this.#refuse(tooMany('too-many-requests', NOT_READ))
  }

  /** Says why, and ends the socket. */
  #refuse(error: unknown, closeCode = POLICY_VIOLATION, reason?: string): void {
    if (this.#closed) return
    this.#closed = true
    const { code, message } = describeRejection(error)
    const frame: ServerFrame = { type: 'error', code, message }
    try {
      if (this.#socket.readyState === OPEN) this.#socket.send(JSON.stringify(frame))
      this.#socket.close(closeCode, reason ?? code)
    } catch {
      // it has gone already
    }
    for (const run of this.#runs.values()) this.#leave(run)
  }

  #leave(run: OpenRun): void {
    this.#runs.delete(run.id)
    run.gone.abort()
  }

  async #open(frame: Untrusted, begun: () => void): Promise<void> {
    const { input } = frame
    // replies repeat it, so it has the length of an id
    const id = checkId('runId', frame.type === 'run' && isRecord(input) ? input.runId : frame.runId)
    if (this.#runs.has(id)) throw invalid('A run needs an id that no other has.')
    const { maxRuns = 16 } = this.#options
    if (this.#runs.size >= maxRuns) {
      const message = `A socket has at most ${maxRuns} runs at a time.`
      return this.#send({ type: 'error', runId: id, code: 'too-many-runs', message })
    }
    const run: OpenRun = { id, gone: new AbortController(), replies: new Set(), stop: () => {} }
    this.#runs.set(id, run)
    try {
      await (frame.type === 'run' ? this.#run(run, frame, begun) : this.#rejoin(run, frame, begun))
      // what the run has taken is confirmed before its end
      await Promise.all(run.replies)
      if (!run.gone.signal.aborted) this.#send({ type: 'end', runId: id })
    } catch (error) {
      const { code, message } = describeRejection(error)
      if (!run.gone.signal.aborted) this.#send({ type: 'error', runId: id, code, message })
    } finally {
      this.#leave(run)
    }
  }

  async #run(run: OpenRun, frame: Untrusted, begun: () => void): Promise<void> {
    const input = readParsedInput(frame.input)
    const context = await this.#context(frame)
    begun()
    if (run.gone.signal.aborted) return
    const { goOnFor = 0 } = this.#options
    const holder = this.#holder(context)
    const held = takeRun(ownerOf(holder), this.#agent.limits, frame)
    try {
      const { events, stop } = serveRun(this.#agent, input, { context, holder, live: true, goOnFor, held })
      run.stop = stop
      run.gone.signal.addEventListener('abort', () => void events.return?.(), { once: true })
      await this.#write(run, events)
    } catch (error) {
      held.release()
      throw error
    }
  }

  async #rejoin(run: OpenRun, frame: Untrusted, begun: () => void): Promise<void> {
    const request = readRejoin(frame.threadId, run.id, frame.lastEventId)
    const holder = this.#holder(await this.#context(frame))
    begun()
    const events = await openReplay(this.#agent, holder, request, run.gone.signal)
    if (events === undefined) return
    run.stop = () => readersOf.get(runKey(holder, request.threadId, run.id))?.stop()
    await this.#write(run, events)
  }

  #stop(id: unknown): void {
    const run = this.#runs.get(checkId('runId', id))
    if (run === undefined) return
    run.stop()
    this.#leave(run)
  }

  async #answer(frame: Untrusted): Promise<void> {
    const id = checkId('The id of an answer', frame.id)
    const { runId } = frame
    const reply = this.#deliver(id, frame)
    const replies = typeof runId === 'string' ? this.#runs.get(runId)?.replies : undefined
    replies?.add(reply)
    await reply
    replies?.delete(reply)
  }

  async #deliver(id: string, frame: Untrusted): Promise<void> {
    try {
      const answers = readLiveAnswers(frame)
      const context = await this.#context(frame)
      const delivery = await deliverAnswers(this.#agent, this.#holder(context), answers, context)
      if (delivery.status === 'taken') return this.#send({ type: 'answered', id })
      this.#send({ type: 'refused', id, code: delivery.code, message: delivery.message })
    } catch (error) {
      const { code, message } = describeRejection(error)
      this.#send({ type: 'refused', id, code, message })
    }
  }

  async #write({ id, gone }: OpenRun, events: AsyncIterable<LoggedEvent>): Promise<void> {
    const runId = JSON.stringify(id)
    for await (const { n, data } of events) {
      if (gone.signal.aborted) return
      const last = JSON.stringify(`${id}:${n}`)
      this.#socket.send(`{"type":"events","runId":${runId},"events":[${data}],"id":${last}}`)
      await this.#untilSent(gone.signal)
    }
  }

  /** Waits while too much is in the socket. A peer that takes nothing of it for a minute loses the socket, and with it all of its runs. */
  async #untilSent(gone: AbortSignal): Promise<void> {
    let least = Number.POSITIVE_INFINITY
    for (let waited = 0; !gone.aborted; waited += POLL_MS) {
      const amount = this.#socket.bufferedAmount ?? 0
      if (amount <= HIGH_WATER) return
      if (amount < least) waited = 0
      if (waited > MAX_STALL) {
        this.#socket.close(POLICY_VIOLATION, 'reader-too-slow')
        this.gone()
        throw readerTooSlow('its socket took nothing for a minute')
      }
      least = Math.min(least, amount)
      await soon()
    }
  }

  #send(frame: ServerFrame): void {
    if (this.#socket.readyState !== OPEN) return
    const text = JSON.stringify(frame)
    this.#owe(text.length)
    if (!this.#closed) this.#socket.send(text)
  }

  async #context({ headers }: { readonly headers?: unknown }): Promise<RunContext | undefined> {
    const given = isRecord(headers) ? Object.entries(headers) : []
    const texts = given.flatMap(([name, value]) =>
      typeof value === 'string' ? [[name.toLowerCase(), value] as const] : [],
    )
    const context = await this.#options.context?.(Object.fromEntries(texts))
    this.#arriving.known(subjectOf(context)?.id)
    return context
  }

  #holder(context: RunContext | undefined): Holder {
    return subjectOf(context) ?? this.#self
  }
}

/** A frame of which only the type is believed. */
interface Untrusted {
  readonly type: string
  readonly input?: unknown
  readonly id?: unknown
  readonly threadId?: unknown
  readonly runId?: unknown
  readonly lastEventId?: unknown
  readonly resume?: unknown
  readonly headers?: unknown
}

/** @throws CountersignError `invalid-request`, `request-too-large` */
function readFrame(data: unknown): Untrusted {
  if (typeof data !== 'string') throw invalid('A message must be text.')
  if (data.length > MAX_BODY_BYTES) throw tooLarge(`A message has more than ${MAX_BODY_BYTES} characters.`)
  const frame = parseBody(data)
  if (!isRecord(frame) || typeof frame.type !== 'string')
    throw invalid('A message must be a frame with a type.')
  // what else there is must not be held for as long as a run is open
  const { type, input, id, threadId, runId, lastEventId, resume, headers } = frame
  return { type, input, id, threadId, runId, lastEventId, resume, headers }
}

/** Browsers' sockets tell nobody when they have sent what was waiting. */
function soon(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, POLL_MS)
  })
}
