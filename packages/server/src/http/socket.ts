import { isRecord, type ServerFrame } from '@countersign/core'
import type { Agent } from '../run/agent.js'
import type { LoggedEvent } from '../run-log/run-log.js'
import { MAX_STALL, readerTooSlow } from '../scope/channel.js'
import type { RunContext } from '../scope/settings.js'
import { deliverAnswers, readLiveAnswers } from './answer.js'
import { type Holder, newSocket, subjectOf } from './holder.js'
import { describeRejection } from './http.js'
import { checkOrigin, type OriginRule } from './origin.js'
import { openRest, readRejoin } from './rejoin.js'
import { invalid, MAX_BODY_BYTES, parseBody, readParsedInput, tooLarge } from './run-input.js'
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
}

export interface SocketOptions extends OriginRule {
  /**
   * What the application knows of the speaker: `subject`, and services for tools. Asked for every frame that wants something, with the
   * headers the client sent in it; what the socket itself was opened with (a cookie) the application has already.
   */
  readonly context?:
    | ((headers: Readonly<Record<string, string>>) => RunContext | Promise<RunContext>)
    | undefined
  /** Milliseconds that runs go on after their socket broke, to be taken up by another. Needs a subject. Default 0. */
  readonly goOnFor?: number | undefined
  /** Runs that may be open on one socket. Default 16. */
  readonly maxRuns?: number | undefined
}

const OPEN = 1
const POLICY_VIOLATION = 1008
/** Bytes that may wait in the socket before the run is asked to wait. */
const HIGH_WATER = 1024 * 1024
/** Milliseconds between two looks at what waits in the socket. */
const POLL_MS = 20

/**
 * Serves runs over a WebSocket that is open, as `webSocket` of `@countersign/client/web-socket` asks for them; the frames are
 * `ClientFrame` and `ServerFrame` of core. A run stays open while a person decides and takes the answers that come meanwhile. `stop`
 * ends it at once, a socket that breaks after `goOnFor`. Pages of another origin are turned away unless `origins` names them. Without a
 * subject, runs belong to their socket: no other takes them up or answers.
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

/** {@link serveSocket}, for requests of any kind. */
export function openSocket(
  agent: Agent,
  socket: ServerSocket,
  opened: { readonly origin: string | null | undefined; readonly host: string | null | undefined },
  options: SocketOptions,
): void {
  try {
    checkOrigin(opened.origin, opened.host, options)
  } catch (error) {
    const { code, message } = describeRejection(error)
    socket.send(JSON.stringify({ type: 'error', code, message } satisfies ServerFrame))
    socket.close(POLICY_VIOLATION, 'origin')
    return
  }
  const peer = new Peer(agent, socket, options)
  socket.addEventListener('message', ({ data }) => void peer.receive(data))
  socket.addEventListener('close', () => peer.gone())
  socket.addEventListener('error', () => peer.gone())
}

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
  readonly #self = newSocket()
  readonly #runs = new Map<string, OpenRun>()

  constructor(agent: Agent, socket: ServerSocket, options: SocketOptions) {
    this.#agent = agent
    this.#socket = socket
    this.#options = options
  }

  /** One message. What is no frame ends the socket: its sender speaks something else. */
  async receive(data: unknown): Promise<void> {
    try {
      const frame = readFrame(data)
      switch (frame.type) {
        case 'run':
        case 'rejoin':
          return await this.#open(frame)
        case 'answer':
          return await this.#answer(frame)
        case 'stop':
          return this.#stop(frame.runId)
        default:
          // a type of frame that a later version may have added
          return
      }
    } catch (error) {
      const { code, message } = describeRejection(error)
      this.#send({ type: 'error', code, message })
      this.#socket.close(POLICY_VIOLATION, code)
    }
  }

  /** The socket has gone. */
  gone(): void {
    for (const run of this.#runs.values()) this.#leave(run)
  }

  #leave(run: OpenRun): void {
    this.#runs.delete(run.id)
    run.gone.abort()
  }

  async #open(frame: Untrusted): Promise<void> {
    const { input } = frame
    const id = frame.type === 'run' && isRecord(input) ? input.runId : frame.runId
    if (typeof id !== 'string' || this.#runs.has(id)) throw invalid('A run needs an id that no other has.')
    const { maxRuns = 16 } = this.#options
    if (this.#runs.size >= maxRuns) {
      const message = `A socket has at most ${maxRuns} runs at a time.`
      return this.#send({ type: 'error', runId: id, code: 'too-many-runs', message })
    }
    const run: OpenRun = { id, gone: new AbortController(), replies: new Set(), stop: () => {} }
    this.#runs.set(id, run)
    try {
      await (frame.type === 'run' ? this.#run(run, frame) : this.#rejoin(run, frame))
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

  async #run(run: OpenRun, frame: Untrusted): Promise<void> {
    const input = readParsedInput(frame.input)
    const context = await this.#context(frame)
    if (run.gone.signal.aborted) return
    const { goOnFor = 0 } = this.#options
    const holder = this.#holder(context)
    const { events, stop } = serveRun(this.#agent, input, { context, holder, live: true, goOnFor })
    run.stop = stop
    run.gone.signal.addEventListener('abort', () => void events.return?.(), { once: true })
    await this.#write(run, events)
  }

  async #rejoin(run: OpenRun, frame: Untrusted): Promise<void> {
    const request = readRejoin(frame.threadId, run.id, frame.lastEventId)
    const holder = this.#holder(await this.#context(frame))
    const events = await openRest(this.#agent, holder, request, run.gone.signal)
    if (events !== undefined) await this.#write(run, events)
  }

  #stop(id: unknown): void {
    const run = this.#runs.get(String(id))
    if (run === undefined) return
    run.stop()
    this.#leave(run)
  }

  async #answer(frame: Untrusted): Promise<void> {
    const { id } = frame
    if (typeof id !== 'string') throw invalid('An answer needs an id.')
    const reply = this.#deliver(id, frame)
    const replies = this.#runs.get(String(frame.runId))?.replies
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
    if (this.#socket.readyState === OPEN) this.#socket.send(JSON.stringify(frame))
  }

  async #context({ headers }: { readonly headers?: unknown }): Promise<RunContext | undefined> {
    const given = isRecord(headers) ? Object.entries(headers) : []
    const texts = given.flatMap(([name, value]) =>
      typeof value === 'string' ? [[name.toLowerCase(), value] as const] : [],
    )
    return this.#options.context?.(Object.fromEntries(texts))
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
  return { ...frame, type: frame.type }
}

/** Browsers' sockets tell nobody when they have sent what was waiting. */
function soon(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, POLL_MS)
  })
}
