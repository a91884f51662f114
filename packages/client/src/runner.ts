import {
  type AnyClientTool,
  areAllToolsComplete,
  awaitedRequests,
  type CallDraft,
  CountersignError,
  clientCalls,
  executingCalls,
  hasUnsentAnswer,
  type RequestOptions,
  type RunEnd,
  type ToolMap,
  type UIMessage,
  visibleRequests,
} from '@countersign/core'
import { runClientTool } from './client-tools.js'
import { createLiveChannel } from './live-channel.js'
import type { KeptThread } from './persistence/persistence.js'
import { createRequest, mergeOptions } from './request.js'
import { type Answered, type AnswerResult, createPendingResults, resultOf } from './results.js'
import { type BrokenRun, type Run, type RunKind, StreamRun } from './run.js'
import { type Session, unsafeCast } from './session.js'

/** A call that is left to this client, and the tool that answers it. */
interface ToolJob {
  readonly call: Pick<CallDraft, 'id' | 'name' | 'input'>
  readonly tool: AnyClientTool
}

/** Whether the server said that it did not take the request. */
function isRefused(end: RunEnd): boolean {
  return end.type === 'failed' && end.error.code === 'http-status' && Number(end.error.data.status) < 500
}

const notStored = {
  error: {
    message: 'It was not run, because that could not be stored.',
    code: 'not-stored',
  },
}

export type Runner = ReturnType<typeof createRunner>

/**
 * What runs and what comes next. Holds one stream open at most; decides in one place, after a command of the user and after the end of
 * a stream; forgets what was under way when something voids it.
 */
export function createRunner<Tools extends ToolMap>(session: Session<Tools>, kept: KeptThread | undefined) {
  const { state, dispatch, store } = session
  const waiting = createPendingResults()
  let run: Run | undefined
  /** A check was refused because a stream was open. The only queue of checks there is. */
  let skipped = false
  /** Grows with everything that voids what is under way. */
  let generation = 0
  /** After a stop nothing goes out until the user acts. */
  let paused = false
  let disposed = false
  /** The last run, where its stream broke off and may be taken up again. */
  let broken: BrokenRun | undefined
  /** Requests that followed one another without a person's command. */
  let automatic = 0
  /** Several answers are being given: what follows is decided after the last. */
  let gathering = false
  let toolsAbort = new AbortController()
  /** Of the last request, for its retry. */
  let lastOptions: RequestOptions | undefined
  const handedOver = new WeakSet<CallDraft>()
  /** Of the request that will carry an answer, also if it is repeated. */
  const optionsOf = new WeakMap<Answered, RequestOptions>()

  const live = createLiveChannel(session, {
    isOpen: (other) => run === other,
    check,
    optionsOf: (answered) => optionsOf.get(answered),
  })

  function resetContinuationLimit(): void {
    paused = disposed
    automatic = 0
  }

  /** The one place that decides what happens next. Where a stream is open, one check follows when it has ended well. */
  function check(): void {
    if (gathering) return
    if (run) skipped = true
    else if (!paused && !continueIfReady()) sendQueued()
  }

  function continueIfReady(): boolean {
    if (session.options.autoContinue === false) return false
    if (!(hasUnsentAnswer(state) && areAllToolsComplete(state))) return false
    const limit = session.options.maxContinuations ?? 100
    if (automatic >= limit) {
      const message = `The chat was stopped after ${limit} requests in a row without the user. Send a message to continue.`
      const error = new CountersignError('too-many-continuations', message, { limit })
      dispatch({ type: 'failed', error })
      session.failed(error)
      return false
    }
    automatic++
    open('continuation')
    return true
  }

  function sendQueued(): void {
    const [item] = state.queue
    if (!item || paused || !mayGo(item)) return
    store.batch(() => {
      dispatch({ type: 'unqueue', id: item.id })
      say(item.message, item.options)
    })
  }

  /**
   * Whether a message may go out, once no stream is open. It cancels the open requests that the user saw when writing it, or waits for them,
   * as `onPendingMessage` says. It always waits for requests that came later, and for client tools at work.
   */
  function mayGo({ visible }: { readonly visible: readonly string[] }): boolean {
    if (executingCalls(state).length > 0) return false
    const pending = awaitedRequests(state)
    const seen = new Set((session.options.onPendingMessage ?? 'cancel') === 'cancel' ? visible : [])
    return pending.every((id) => seen.has(id))
  }

  /** The person's words go out; the requests they pass over are closed with the same request. */
  function say(message: UIMessage, options?: RequestOptions): Run {
    const ids = visibleRequests(state)
    const before = () => {
      if (ids.length > 0) dispatch({ type: 'close', ids, because: 'moved-on' })
      dispatch({ type: message.role === 'user' ? 'user-message' : 'append', message })
    }
    return open('message', before, { options })
  }

  /** The person wants the last request again: its broken run goes on where it can, else it is repeated from the present state. */
  async function retryLastRun(): Promise<void> {
    resetContinuationLimit()
    if (broken) {
      const before = generation
      const end = await open('rejoin', undefined, { rejoin: broken }).done
      // There is no such run, or the server has stopped it.
      const isGone = end.type === 'failed' && !end.resumable && /^(empty|truncated)-/.test(end.error.code)
      if (!isGone || run || before !== generation) return
    }
    await open('retry').done
  }

  /** Claims the stream and opens it, before anything is awaited and before any listener hears of it. */
  function open(
    kind: RunKind,
    before?: () => void,
    { rejoin, options }: { rejoin?: BrokenRun; options?: RequestOptions | undefined } = {},
  ): Run {
    return store.batch(() => {
      before?.()
      if (kind !== 'retry' && !rejoin) lastOptions = options
      const own = mergeOptions([lastOptions, ...[...state.unsent].map((answered) => optionsOf.get(answered))])
      if (kind === 'retry') dispatch({ type: 'drop-unfinished' })
      const { threadId } = session
      const runId = rejoin?.cursor.runId ?? session.newId()
      const input = createRequest(state, {
        ...session.options,
        threadId,
        runId,
        own,
        again: kind === 'retry',
        warn: (message) => session.warn(message),
      })
      session.seen?.({ type: 'request', input, rejoin: rejoin?.cursor })
      const opened = new StreamRun(
        session,
        kind,
        input,
        { ...session.headers, ...own.headers },
        rejoin,
        live.sendKept,
        closed,
      )
      run = opened
      skipped = false
      broken = undefined
      dispatch({ type: rejoin ? 'run-rejoined' : 'run-opened', runId, again: kind === 'retry' })
      void kept?.keep()
      opened.start()
      if (rejoin) live.sendKept(opened)
      return opened
    })
  }

  /** The stream is closed: publish, tell, run client tools, check once if a check was refused, then let the queue go. */
  function closed(over: Run, end: RunEnd): void {
    const before = generation
    // From its start on the server has what the request took along.
    const acknowledged = state.run.phase === 'streaming'
    if (end.type === 'success') live.settle(over)
    // What was answered while its run was broken off could not be checked then.
    const mustCheck = skipped || over.kind === 'rejoin'
    run = undefined
    broken = over.broken
    skipped = false
    const { jobs, info } = store.batch(() => {
      const uncertain = over.connection.repeatsAnswers && !isRefused(end)
      dispatch({ type: 'run-closed', end, ...(uncertain && { uncertain }) })
      const info = finishedInfo()
      // Before any listener hears of the end: one that acts at once must not have these told that they wait.
      for (const answered of over.carried) {
        const isKept =
          state.unsent.has(answered) && (end.type === 'success' || !acknowledged || over.unsure.has(answered))
        const result = resultOf(answered, end)
        if (!isKept || result.status !== 'sent') waiting.resolve(answered, result)
      }
      return {
        info,
        jobs: end.type === 'success' && before === generation && !over.isForeign ? claimTools() : [],
      }
    })
    // Whoever voided it decides what follows.
    if (end.type !== 'aborted') {
      if (end.type === 'failed') session.failed(end.error)
      else session.callBack(() => session.options.onFinish?.(unsafeCast(info)))
      runTools(jobs, before)
      // A listener or callback may have acted meanwhile.
      if (before === generation && !run && !paused) {
        if (!(mustCheck && end.type === 'success' && continueIfReady())) sendQueued()
      }
      resolveRest()
    }
    rest()
  }

  /** Nothing is left to do in this turn: what is known now is saved, and what is not needed is let go. */
  function rest(): void {
    void kept?.keep()
    if (!run) kept?.leaveIfUnused()
  }

  /** What is known of the run that has closed, before anybody acts on that. */
  function finishedInfo() {
    const last = state.run.phase === 'idle' ? state.run.last : undefined
    const { messages, usage } = store.getSnapshot()
    return { messages, usage, reason: last?.reason, outcome: last?.outcome ?? 'success' }
  }

  /** Client tools start when their run has finished, never before. */
  function claimTools(): ToolJob[] {
    return clientCalls(state).flatMap((call) => {
      const tool = session.options.tools?.find(({ name }) => name === call.name)
      if (!tool) {
        handOver(call)
        return []
      }
      dispatch({ type: 'tool-started', toolCallId: call.id })
      return [{ call, tool }]
    })
  }

  /** The application answers it. Called once for each call, when listeners have been notified. */
  function handOver(call: ToolJob['call']): void {
    const draft = state.calls.get(call.id)
    if (!draft || handedOver.has(draft)) return
    handedOver.add(draft)
    const before = generation
    queueMicrotask(() => {
      if (before === generation) session.callBack(() => session.options.onToolCall?.(unsafeCast(call)))
    })
  }

  /** Side by side, but for calls with one id, whose outputs are told apart by their order. */
  function runTools(jobs: readonly ToolJob[], before: number): void {
    const running = new Map<string, Promise<void>>()
    for (const job of jobs) {
      const work = () => runTool(job, before)
      const { id } = job.call
      running.set(id, running.get(id)?.then(work) ?? work())
    }
  }

  async function runTool({ call, tool }: ToolJob, before: number): Promise<void> {
    // Whoever heard of the end of the run may have stopped the chat, and so may whoever hears of this call.
    if (before !== generation) return
    session.callBack(() => session.options.onToolCall?.(unsafeCast(call)))
    // Stored before it runs, so that no reload runs it a second time.
    const stored = !kept || (await kept.keep())
    if (before !== generation) return
    const { toolContext } = session.options
    const context = { toolCallId: call.id, signal: toolsAbort.signal, context: toolContext }
    const result = stored ? await runClientTool(tool, call.input, context) : notStored
    if (before !== generation) return
    // One round, as for a person's answer: nobody sees the state between the result and its request.
    store.batch(() => {
      giveOutput(call.id, result)
      check()
    })
    rest()
  }

  function giveOutput(toolCallId: string, result: Awaited<ReturnType<typeof runClientTool>>): void {
    dispatch({ type: 'tool-output', toolCallId, messageId: session.newId(), ...result })
  }

  /** Of what goes with an open run its end tells. What is stored outlives this client, and its answers wait for the next page. */
  function resolveRest(): void {
    if (!run && !gathering)
      waiting.resolveRest((answered) => state.unsent.has(answered) && (kept || !disposed))
  }

  function giveUpTools(): void {
    const error = { message: 'It was stopped and may or may not have run.', code: 'interrupted' }
    for (const { id } of executingCalls(state)) giveOutput(id, { error })
  }

  return {
    /** The open stream. */
    get run() {
      return run
    },
    /** Whether a stream is open or a client tool at work. */
    get isBusy() {
      return run !== undefined || executingCalls(state).length > 0
    },
    get disposed() {
      return disposed
    },
    inspect: () => ({
      continuationPending: run?.kind === 'continuation',
      continuationSkipped: skipped,
      generation,
      openRun: run?.id,
    }),
    check,
    retryLastRun,
    mayLeave: mayGo,
    open,
    resetContinuationLimit,
    say,
    sendQueued,

    /** Reads a run that is open on the server from its first event. Resolves with whether there is such a run. */
    async rejoin(runId: string, isForeign: boolean): Promise<boolean> {
      if (run || disposed) return true
      const before = generation
      const cursor = { threadId: session.threadId, runId }
      const end = await open('rejoin', undefined, { rejoin: { cursor, isForeign } }).done
      return end.type !== 'aborted' || before !== generation
    },

    pause(): void {
      paused = true
    },

    dispose(): void {
      disposed = true
    },

    /** Runs what the last run left to this client, where nothing runs: after a reload. Gives whether nothing stopped it meanwhile. */
    startTools(): boolean {
      const before = generation
      runTools(store.batch(claimTools), before)
      return before === generation
    },

    /** An answer was given: it goes out if it can, and its giver is told what became of it. */
    sendAnswer(answered: Answered, options?: RequestOptions): Promise<AnswerResult> {
      if (options) optionsOf.set(answered, options)
      else optionsOf.delete(answered)
      const result = waiting.wait(answered)
      void kept?.keep()
      if (!(run && live.send(run, answered))) check()
      resolveRest()
      return result
    },

    resolveRest,

    /** Gives several answers, which count as one: none of them is sent or reported before the last is given. */
    gather<T>(give: () => T): T {
      return store.batch(() => {
        gathering = true
        const given = give()
        gathering = false
        check()
        resolveRest()
        return given
      })
    },

    /** An answer was taken back: whoever gave it learns that it was not used. */
    withdrawn: (answered: Answered) => waiting.resolve(answered, { status: 'closed', reason: 'withdrawn' }),

    /** Stores what the user did: a page may be left at any moment. */
    keep: () => void kept?.keep(),

    /** Voids what is under way, after which `resolveRest` is due: late events are not applied, tools at work are given up, checks are forgotten. */
    void(): void {
      generation++
      broken = undefined
      toolsAbort.abort()
      toolsAbort = new AbortController()
      run?.end({ type: 'aborted' })
      giveUpTools()
    },

    /** The tab that ran the streams is gone: its run is broken, its tools at work may or may not have run. */
    takeOver(error: CountersignError): void {
      store.batch(() => {
        dispatch({ type: 'run-closed', end: { type: 'failed', error } })
        giveUpTools()
      })
      void kept?.keep()
    },
  }
}
