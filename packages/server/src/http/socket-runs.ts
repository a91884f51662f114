import { isRecord } from '@countersign/core'
import type { Agent } from '../run/agent.js'
import type { LoggedEvent } from '../run-log/run-log.js'
import { type Holder, newSocket, type RunContext, runKey, subjectOf } from '../scope/run-context.js'
import { deliverAnswers, readLiveAnswers } from './answer.js'
import type { ClientFrame } from './client-frame.js'
import { describeRejection } from './http.js'
import type { Outgoing } from './outgoing.js'
import { readersOf } from './readers.js'
import { openReplay, readRejoin } from './rejoin.js'
import { checkId, invalid, readParsedInput } from './run-input.js'
import { KEEP_ALIVE_MS } from './sse.js'
import { startRun } from './start-run.js'

export interface SocketRunOptions {
  /** Milliseconds that a run continues, to be rejoined, after its last socket in this process broke. Needs a subject. Default 0. */
  readonly goOnFor?: number | undefined
  /** Milliseconds between two signs of life to a reader: frames without events. Default 15,000. */
  readonly keepAlive?: number | undefined
  /** How many runs may be open on one socket. Default 16. */
  readonly maxRuns?: number | undefined
}

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

/** The runs of one socket: what its frames request. */
export class SocketRuns {
  readonly #self = newSocket()
  readonly #runs = new Map<string, OpenRun>()

  /**
   * @param gone Aborted when the socket has closed.
   * @param contextOf Asks the application about the sender of a frame.
   */
  constructor(
    private readonly agent: Agent,
    private readonly options: SocketRunOptions,
    private readonly out: Outgoing,
    private readonly gone: AbortSignal,
    private readonly contextOf: (frame: ClientFrame, left: AbortSignal) => Promise<RunContext | undefined>,
  ) {}

  /**
   * Starts a run, or rejoins one. Resolves when it has ended here. `begun`: its frame is no longer needed.
   *
   * @throws CountersignError `invalid-request`
   */
  async open(frame: ClientFrame, begun: () => void): Promise<void> {
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
      return this.out.reply({ type: 'error', runId: id, status: 429, code: 'too-many-runs', message })
    }
    const run: OpenRun = { id, gone: new AbortController(), replies: new Set(), stop: () => {} }
    this.#runs.set(id, run)
    try {
      await (frame.type === 'run' ? this.#run(run, frame, begun) : this.#rejoin(run, frame, begun))
      // Answers that the run has taken are confirmed before its end.
      await Promise.all(run.replies)
      if (!run.gone.signal.aborted) this.out.reply({ type: 'end', runId: id })
    } catch (error) {
      const { aborted, reason } = run.gone.signal
      if (aborted && (error === reason || error === this.gone.reason)) return
      const { status, code, message } = describeRejection(this.agent, error)
      if (!aborted) this.out.reply({ type: 'error', runId: id, status, code, message })
    } finally {
      this.#runs.delete(run.id)
      this.out.onceSent(() => run.gone.abort())
    }
  }

  async #run(run: OpenRun, frame: ClientFrame, begun: () => void): Promise<void> {
    const input = readParsedInput(frame.input, this.agent.limits)
    const context = await this.contextOf(frame, run.gone.signal)
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

  async #rejoin(run: OpenRun, frame: ClientFrame, begun: () => void): Promise<void> {
    const request = readRejoin(this.agent, frame.threadId, run.id, frame.lastEventId)
    // Also for a run that is stopped before: it must be known which.
    const asked = this.contextOf(frame, this.gone).then((context) => this.#holder(context))
    const key = (holder: Holder) => runKey(holder, request.threadId, run.id)
    run.stop = () => void asked.then((holder) => readersOf.get(key(holder))?.stop()).catch(() => {})
    const holder = await asked
    begun()
    const events = await openReplay(this.agent, holder, request, run.gone.signal)
    if (events === undefined) return
    // A run in the middle of a long call may say nothing for a while.
    this.out.reply({ type: 'events', runId: run.id, events: [] })
    await this.#write(run, events)
  }

  stop(id: unknown): void {
    const run = this.#runs.get(checkId('runId', id, this.agent.limits))
    if (run === undefined) return
    run.stop()
    this.#leave(run)
  }

  async answer(frame: ClientFrame): Promise<void> {
    const id = checkId('The id of an answer', frame.id, this.agent.limits)
    const { runId } = frame
    const reply = this.#deliver(id, frame)
    const replies = typeof runId === 'string' ? this.#runs.get(runId)?.replies : undefined
    replies?.add(reply)
    await reply
    replies?.delete(reply)
  }

  async #deliver(id: string, frame: ClientFrame): Promise<void> {
    try {
      const answers = readLiveAnswers(frame, this.agent.limits)
      const context = await this.contextOf(frame, this.gone)
      const delivery = await deliverAnswers(this.agent, this.#holder(context), answers, context)
      if (delivery.status === 'taken') return this.out.reply({ type: 'answered', id })
      this.out.reply({ type: 'refused', id, code: delivery.code, message: delivery.message })
    } catch (error) {
      if (this.gone.aborted) return
      const { code, message } = describeRejection(this.agent, error)
      this.out.reply({ type: 'refused', id, code, message })
    }
  }

  async #write({ id, gone }: OpenRun, batches: AsyncIterable<readonly LoggedEvent[]>): Promise<void> {
    const runId = JSON.stringify(id)
    const beat = () => this.out.beat({ type: 'events', runId: id, events: [] })
    const timer = setInterval(beat, this.options.keepAlive ?? KEEP_ALIVE_MS)
    try {
      for await (const batch of batches) {
        if (gone.signal.aborted) return
        const events = batch.map(({ data }) => data).join()
        const last = JSON.stringify(`${id}:${batch.at(-1)?.n}`)
        const text = `{"type":"events","runId":${runId},"events":[${events}],"id":${last}}`
        await this.out.sendEvents(text, gone.signal)
      }
    } finally {
      clearInterval(timer)
    }
  }

  /** Nobody reads them here any more. */
  leave(): void {
    for (const run of this.#runs.values()) this.#leave(run)
  }

  #leave(run: OpenRun): void {
    this.#runs.delete(run.id)
    run.gone.abort()
  }

  #holder(context: RunContext | undefined): Holder {
    return subjectOf(context) ?? this.#self
  }
}
