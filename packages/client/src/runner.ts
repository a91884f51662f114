import {
  type AnyClientTool,
  type ChatState,
  CountersignError,
  clientCalls,
  executingCalls,
  type RunEnd,
  type ToolMap,
  type UIMessage,
  visibleRequests,
} from '@countersign/core'
import { runClientTool } from './client-tools.js'
import { mayLeave, shouldContinue } from './continuation.js'
import { LiveChannel } from './live-channel.js'
import type { Keeper } from './persistence/keeper.js'
import { createRequest } from './request.js'
import { type Answered, type AnswerResult, createWaitingRoom, resultOf } from './results.js'
import { type BrokenRun, createRun, type Run, type RunKind } from './run.js'
import { type Session, typed } from './session.js'

/** A call that is left to this client, and the tool that answers it. */
interface ToolJob {
  readonly call: { readonly id: string; readonly name: string; readonly input: unknown }
  readonly tool: AnyClientTool
}

const notStored = {
  error: {
    message: 'It was not run, because it could not be stored first that it runs.',
    code: 'not-stored',
  },
}

/**
 * What runs and what comes next. Holds one stream open at most; decides in one place, after an act of the person and after the end of
 * a stream; forgets what was under way when something voids it.
 */
export class Runner<Tools extends ToolMap> {
  run: Run | undefined
  /** A check was refused because a stream was open. The only queue of checks there is. */
  skipped = false
  /** Grows with everything that voids what is under way. */
  generation = 0
  disposed = false
  /** After a stop nothing goes out until the person acts. */
  #held = false
  /** The last run, where its stream broke off and may be taken up again. */
  #broken: BrokenRun | undefined
  /** Requests that followed one another without a person's act. */
  #automatic = 0
  #toolsAbort = new AbortController()
  readonly #waiting = createWaitingRoom()
  readonly #session: Session<Tools>
  readonly #keeper: Keeper<Tools> | undefined
  readonly #live: LiveChannel<Tools>
  readonly #onIdle: () => void

  /** `onIdle` is called when a stream has ended and no other follows. */
  constructor(session: Session<Tools>, keeper: Keeper<Tools> | undefined, onIdle: () => void) {
    this.#session = session
    this.#keeper = keeper
    this.#live = new LiveChannel(session, this)
    this.#onIdle = onIdle
  }

  get #state(): ChatState {
    return this.#session.state
  }

  /** Whether a stream is open or a client tool at work. */
  get isBusy(): boolean {
    return this.run !== undefined || executingCalls(this.#state).length > 0
  }

  personActs(): void {
    this.#held = this.disposed
    this.#automatic = 0
  }

  hold(): void {
    this.#held = true
  }

  /** The one place that decides what happens next. Where a stream is open, one check follows when it has ended well. */
  check(): void {
    if (this.run) {
      this.skipped = true
      return
    }
    if (!this.#held && !this.#continue()) this.sendQueued()
  }

  #continue(): boolean {
    if (!shouldContinue(this.#state)) return false
    const limit = this.#session.options.maxContinuations ?? 100
    if (this.#automatic >= limit) {
      this.#runAway(limit)
      return false
    }
    this.#automatic++
    this.open('continuation')
    return true
  }

  #runAway(limit: number): void {
    const message = `The agent asked ${limit} times in a row without an act of the person; the chat was stopped. Send a message to go on.`
    const error = new CountersignError('too-many-continuations', message, { limit })
    this.#session.dispatch({ type: 'failed', error })
    this.#session.failed(error)
  }

  sendQueued(): void {
    const [item] = this.#state.queue
    if (!item || this.#held || !this.mayLeave(item)) return
    this.#session.store.batch(() => {
      this.#session.dispatch({ type: 'unqueue', id: item.id })
      this.say(item.message)
    })
  }

  mayLeave(item: { readonly visible: readonly string[] }): boolean {
    return mayLeave(this.#state, item, this.#session.options.onPendingMessage ?? 'cancel')
  }

  /** The person's words go out; the requests they pass over are closed with the same request. */
  say(message: UIMessage): Run {
    const ids = visibleRequests(this.#state)
    return this.open('message', () => {
      if (ids.length > 0) this.#session.dispatch({ type: 'close', ids, because: 'moved-on' })
      this.#session.dispatch({ type: 'user-message', message })
    })
  }

  /** The person wants the last request again: its broken run goes on where it can, else it is repeated from the present state. */
  async again(): Promise<void> {
    this.personActs()
    const broken = this.#broken
    if (broken && this.#session.options.connection.rejoin) {
      const { generation } = this
      const end = await this.open('rejoin', undefined, broken).done
      const nothingThere = end.type === 'failed' && end.error.code === 'empty-response'
      if (!nothingThere || this.run || generation !== this.generation) return
    }
    await this.open('retry').done
  }

  /** Claims the stream and opens it, before anything is awaited and before any listener hears of it. */
  open(kind: RunKind, before: () => void = () => {}, rejoin?: BrokenRun): Run {
    return this.#session.store.batch(() => {
      before()
      const run = this.#create(kind, rejoin)
      this.run = run
      this.skipped = false
      this.#broken = undefined
      this.#session.dispatch({ type: rejoin ? 'run-rejoined' : 'run-opened', runId: run.id })
      void this.#record()
      run.start()
      return run
    })
  }

  #create(kind: RunKind, rejoin: BrokenRun | undefined): Run {
    const session = this.#session
    const { state, threadId } = session
    const { connection, headers = {}, tools = [], forwardedProps } = session.options
    const runId = rejoin?.cursor.runId ?? session.newId()
    const input = createRequest(state, { threadId, runId, tools, forwardedProps, again: kind === 'retry' })
    return createRun({
      connection,
      input,
      kind,
      rejoin,
      carried: new Set<Answered>(state.unsent),
      options: { messages: session.store.getSnapshot().messages, headers },
      onEvent: (event) => session.dispatch(event),
      onUnknown: (event) => session.callBack(() => session.options.onEvent?.(event)),
      onWarning: ({ message }) => session.warn(message),
      failure: () => (state.run.phase === 'idle' ? undefined : state.run.failure),
      started: () => state.run.phase === 'streaming',
      onEnd: (run, end) => this.#closed(run, end),
    })
  }

  /** The stream is closed: publish, tell, run client tools, check once if a check was refused, then let the queue go. */
  #closed(run: Run, end: RunEnd): void {
    const { generation } = this
    // What was answered while its run was broken off could not be checked then.
    let skipped = this.skipped || run.kind === 'rejoin'
    this.run = undefined
    this.#broken = run.broken
    this.skipped = false
    const jobs = this.#session.store.batch(() => {
      this.#session.dispatch({ type: 'run-closed', end })
      if (this.#live.settle(run, end)) skipped = true
      // Before any listener hears of the end: one that acts at once must not have these told that they wait.
      for (const answered of run.carried) this.#waiting.tell(answered, resultOf(answered, end))
      return end.type === 'success' && generation === this.generation ? this.#claimTools() : []
    })
    // Whoever voided it decides what follows.
    if (end.type !== 'aborted') this.#next(end, jobs, skipped, generation)
    void this.#record()
    if (!this.run) this.#onIdle()
  }

  #next(
    end: Exclude<RunEnd, { type: 'aborted' }>,
    jobs: readonly ToolJob[],
    skipped: boolean,
    generation: number,
  ): void {
    if (end.type === 'failed') this.#session.failed(end.error)
    else this.#finished()
    for (const job of jobs) void this.#runTool(job, generation)
    // A listener or callback may have acted meanwhile.
    if (generation === this.generation && !this.run && !this.#held) {
      if (!(skipped && end.type === 'success' && this.#continue())) this.sendQueued()
    }
    if (!this.run) this.#waiting.tellRest()
  }

  #finished(): void {
    const { run } = this.#state
    const last = run.phase === 'idle' ? run.last : undefined
    const info = {
      messages: this.#session.store.getSnapshot().messages,
      reason: last?.reason,
      outcome: last?.outcome ?? 'success',
    }
    this.#session.callBack(() => this.#session.options.onFinish?.(typed(info)))
  }

  /** Client tools start when their run has finished, never before. */
  #claimTools(): ToolJob[] {
    return clientCalls(this.#state).flatMap((call) => {
      const tool = this.#session.options.tools?.find(({ name }) => name === call.name)
      if (!tool) return []
      this.#session.dispatch({ type: 'tool-started', toolCallId: call.id })
      return [{ call, tool }]
    })
  }

  async #runTool({ call, tool }: ToolJob, generation: number): Promise<void> {
    // Whoever heard of the end of the run may have stopped the chat, and so may whoever hears of this call.
    if (generation !== this.generation) return
    this.#session.callBack(() => this.#session.options.onToolCall?.(typed(call)))
    // Stored before it runs, so that no reload runs it a second time.
    const stored = !this.#keeper || (await this.#keeper.keep())
    if (generation !== this.generation) return
    const context = { toolCallId: call.id, signal: this.#toolsAbort.signal }
    const result = stored ? await runClientTool(tool, call.input, context) : notStored
    if (generation !== this.generation) return
    const messageId = this.#session.newId()
    this.#session.dispatch({ type: 'tool-output', toolCallId: call.id, messageId, ...result })
    void this.#record()
    this.check()
    if (!this.run) this.#onIdle()
  }

  /** Saves what is known now, where anything is kept. */
  async #record(): Promise<void> {
    await this.#keeper?.keep()
  }

  /** The tab that ran the streams is gone: its run is broken, its tools at work may or may not have run. */
  takeOver(error: CountersignError): void {
    this.#session.store.batch(() => {
      this.#session.dispatch({ type: 'run-closed', end: { type: 'failed', error } })
      this.#giveUpTools()
    })
    void this.#record()
  }

  /** Runs what the last run left to this client, where nothing runs: after a reload. */
  startTools(): void {
    const jobs = this.#session.store.batch(() => this.#claimTools())
    for (const job of jobs) void this.#runTool(job, this.generation)
  }

  /** An answer was given: it goes out if it can, and its giver is told what became of it. */
  sendAnswer(answered: Answered): Promise<AnswerResult> {
    const result = this.#waiting.wait(answered)
    void this.#record()
    if (!(this.run && this.#live.send(this.run, answered))) this.check()
    if (!this.run) this.#waiting.tellRest()
    return result
  }

  /** Voids what is under way: late events are not applied, tools at work are given up, checks are forgotten. */
  void(): void {
    this.generation++
    this.#broken = undefined
    this.#toolsAbort.abort()
    this.#toolsAbort = new AbortController()
    this.run?.end({ type: 'aborted' })
    this.#giveUpTools()
    this.#waiting.tellRest()
  }

  #giveUpTools(): void {
    const error = { message: 'It was stopped and may or may not have run.', code: 'interrupted' }
    for (const { id } of executingCalls(this.#state)) {
      this.#session.dispatch({ type: 'tool-output', toolCallId: id, messageId: this.#session.newId(), error })
    }
  }
}
