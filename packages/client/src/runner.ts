import {
  areAllToolsComplete,
  awaitedRequests,
  type CallDraft,
  CountersignError,
  clientCalls,
  executingCalls,
  hasUnsentAnswer,
  isRefusedWhole,
  type RequestOptions,
  type RunEnd,
  type ToolMap,
  type UIMessage,
  visibleRequests,
} from '@countersign/core'
import { expiryOf } from './expiry.js'
import { createLiveChannel } from './live-channel.js'
import type { KeptThread } from './persistence/persistence.js'
import { createRequest, mergeOptions } from './request.js'
import { type Answered, type AnswerResult, createPendingResults, resultOf } from './results.js'
import { type BrokenRun, type Run, type RunKind, StreamRun } from './run.js'
import { type Session, unsafeCast } from './session.js'
import { createToolJobs } from './tool-jobs.js'

/** Whether the server said that it did not take the request. */
function isRefused(end: RunEnd): boolean {
  return end.type === 'failed' && !end.resumable && (end.error.data.status as number) < 500
}

export type Runner = ReturnType<typeof createRunner>

/**
 * Runs requests, at most one stream at a time, and decides in one place what comes next: after a command of the user, and after the end
 * of a stream.
 */
export function createRunner<Tools extends ToolMap>(session: Session<Tools>, kept: KeptThread | undefined) {
  const { state, dispatch, store } = session
  const waiting = createPendingResults()
  let run: Run | undefined
  /** A check was skipped because a stream was open. One check at its end makes up for all of them. */
  let skipped = false
  /** Incremented when pending work is voided, so that asynchronous code can tell. */
  let generation = 0
  /** After `stop()`, nothing is sent until the user acts. */
  let paused = false
  let disposed = false
  /** The last run, if its stream broke off and can be rejoined. */
  let broken: BrokenRun | undefined
  /** How many requests in a row were sent without a command of the user. */
  let automatic = 0
  /** What was answered since the user did anything else: calls, and ids of interrupts. */
  const answeredBefore = new Set<CallDraft | string>()
  /** Several answers are being given; what to do next is decided after the last one. */
  let gathering = false
  /** Of unsent answers, and of the last request under `undefined`: for the next request and its retry. In the order given: later ones win. */
  const optionsOf = new Map<Answered | undefined, RequestOptions | undefined>()

  const live = createLiveChannel(session, {
    isOpen: (other) => run === other,
    check,
    optionsOf: (answered) => optionsOf.get(answered),
  })
  const tools = createToolJobs(session, kept, check, rest)

  /** A call or an id that is `answered` again and again: the server keeps asking, and code may answer it instead of the user. */
  function resetContinuationLimit(answered?: CallDraft | string): void {
    paused = disposed
    if (answered === undefined) answeredBefore.clear()
    else if (answeredBefore.has(answered)) return
    else answeredBefore.add(answered)
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
    if (hasUnsentAnswer(state)) closeExpired()
    // A listener may have acted.
    if (run) return true
    if (!(hasUnsentAnswer(state) && areAllToolsComplete(state))) return false
    const limit = session.options.maxContinuations ?? 100
    if (automatic >= limit) {
      const message = `Stopped after ${limit} requests in a row without the user. Send a message to continue.`
      const error = new CountersignError('too-many-continuations', message, { limit })
      dispatch({ type: 'failed', error })
      session.failed(error)
      return false
    }
    automatic++
    open('continuation', cancelChanged)
    return true
  }

  /** AG-UI: a request answers every interrupt of the run before it. Nobody can answer those that have changed. */
  function cancelChanged(): void {
    const { run } = state
    const last = run.phase === 'idle' ? run.last?.runId : undefined
    const ids = state.asked.flatMap(({ approval, askedIn }) =>
      approval?.problem && last !== undefined && askedIn === last ? approval.id : [],
    )
    if (ids.length > 0) dispatch({ type: 'close', ids, because: 'moved-on' })
  }

  /** Where no page watches the clock: once all open requests have expired, nothing waits for them. */
  function closeExpired(): void {
    const { asked } = state
    if (run || disposed || asked.length === 0) return
    const now = session.now()
    const isOver = ({ approval }: CallDraft) => approval?.problem || (approval && expiryOf(approval) <= now)
    if (!asked.every(isOver)) return
    const ids = asked.flatMap(({ approval }) => (approval && !approval.problem ? approval.id : []))
    if (ids.length > 0) dispatch({ type: 'close', ids, because: 'expired' })
  }

  /**
   * By itself, nothing goes out behind a request that the server refused: with the next message, the refused one may be left out. Nor while a
   * run that broke off may go on there, nor while a client tool has to run: the message would close its call.
   */
  function sendQueued(isAsked = false): Run | undefined {
    const { queue, error } = state
    const [item] = queue
    if (!item || run || paused || !mayGo(item)) return undefined
    const isRefused = error?.data.status || error?.data.code === 'thread-full' || isRefusedWhole(error)
    const isBroken = state.run.phase === 'idle' && state.run.brokenOff
    const waits = isRefused || isBroken || clientCalls(state).length > 0
    if (waits && !isAsked) return undefined
    return store.batch(() => {
      dispatch({ type: 'unqueue', id: item.id })
      // What another page has sent meanwhile is in the conversation.
      return state.messages.has(item.id) ? sendQueued(isAsked) : say(item.message, item.options)
    })
  }

  /**
   * Whether a message can be sent once no stream is open. It cancels the open requests that the user saw when writing it, or waits for them,
   * depending on `onPendingMessage`. It always waits for requests that came later, and for client tools that are running.
   */
  function mayGo({ visible }: { readonly visible: readonly string[] }): boolean {
    if (executingCalls(state).length > 0) return false
    const pending = awaitedRequests(state)
    const seen = new Set((session.options.onPendingMessage ?? 'cancel') === 'cancel' ? visible : [])
    return pending.every((id) => seen.has(id))
  }

  /** Sends a message. The same request cancels the open approval requests. */
  function say(message: UIMessage, options?: RequestOptions): Run {
    const ids = visibleRequests(state)
    const before = () => {
      if (ids.length > 0) dispatch({ type: 'close', ids, because: 'moved-on' })
      dispatch({ type: message.role === 'user' ? 'user-message' : 'append', message })
    }
    return open('message', before, { options })
  }

  /** Rejoins the broken run if possible; otherwise repeats the last request from the present state. Resolves with whether that succeeded. */
  async function retryLastRun(): Promise<boolean> {
    resetContinuationLimit()
    if (broken) {
      const before = generation
      const end = await open('rejoin', undefined, { rejoin: broken }).done
      // There is no such run, or the server has stopped it.
      const isGone = end.type === 'failed' && !end.resumable && /^(empty|truncated)-/.test(end.error.code)
      if (!isGone || run || before !== generation) return end.type === 'success'
    }
    return (await open('retry').done).type === 'success'
  }

  function takeOptions(of: Answered | undefined, options: RequestOptions | undefined): void {
    optionsOf.delete(of)
    if (options) optionsOf.set(of, options)
  }

  /** Opens the stream. Synchronous, so that no listener can open another one first. */
  function open(
    kind: RunKind,
    before?: () => void,
    { rejoin, options }: { rejoin?: BrokenRun; options?: RequestOptions | undefined } = {},
  ): Run {
    return store.batch(() => {
      before?.()
      if (kind !== 'retry' && !rejoin) takeOptions(undefined, options)
      for (const answered of optionsOf.keys())
        if (answered && !state.unsent.has(answered)) optionsOf.delete(answered)
      const own = mergeOptions([...optionsOf.values()])
      if (kind === 'retry') dispatch({ type: 'drop-unfinished' })
      const threadId = session.open()
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
      dispatch({
        type: rejoin ? 'run-rejoined' : 'run-opened',
        runId,
        again: kind === 'retry',
        from: rejoin?.from,
        isUnheard: rejoin?.isUnheard,
      })
      void kept?.keep()
      opened.start()
      if (rejoin) live.sendKept(opened)
      return opened
    })
  }

  /** The stream is closed: publishes, resolves results, runs client tools, makes up for a skipped check, then sends the queue. */
  function closed(over: Run, end: RunEnd): void {
    const before = generation
    // Once the run has started, the server has everything that its request carried.
    const acknowledged = state.run.phase === 'streaming'
    if (end.type === 'success') live.settle(over)
    // Answers given while the stream was broken could not be checked then.
    const mustCheck = skipped || over.kind === 'rejoin'
    run = undefined
    broken = over.broken
    skipped = false
    const { jobs, info } = store.batch(() => {
      const uncertain = over.connection.repeatsAnswers && !isRefused(end)
      dispatch({ type: 'run-closed', end, ...(uncertain && { uncertain }) })
      const info = finishedInfo()
      // Before listeners are notified: if one acts at once, these results must not become `waiting`.
      for (const answered of over.carried) {
        const isKept =
          state.unsent.has(answered) && (end.type === 'success' || !acknowledged || over.unsure.has(answered))
        const result = resultOf(answered, end)
        if (!isKept || result.status !== 'sent') waiting.resolve(answered, result)
      }
      return {
        info,
        jobs: end.type === 'success' && before === generation && !over.isForeign ? tools.claim() : [],
      }
    })
    // If the run was voided, the command that did so decides what comes next.
    if (end.type !== 'aborted') {
      if (end.type === 'failed') {
        // The server does not know the run: `retry()` asks anew.
        if (over.kind !== 'rejoin' || end.error.code !== 'empty-response') session.failed(end.error)
      } else session.callBack(() => session.options.onFinish?.(unsafeCast(info)))
      tools.run(jobs)
      // A listener or callback may have acted meanwhile.
      if (before === generation && !run && !paused) {
        if (!(mustCheck && end.type === 'success' && continueIfReady())) sendQueued()
      }
      resolveRest()
    }
    rest()
  }

  /** The turn is over: saves the state, and releases the stored thread if nobody uses it. */
  function rest(): void {
    void kept?.keep()
    if (!run) kept?.leaveIfUnused()
  }

  /** What is known of the run that has closed, read before a listener can change it. */
  function finishedInfo() {
    const { messages, usage, lastRun } = store.getSnapshot()
    return { outcome: 'success', ...lastRun, messages, usage }
  }

  /** While a run is open, its end resolves what it carries. Stored answers outlive this client, and wait for the next page. */
  function resolveRest(): void {
    if (!run && !gathering)
      waiting.resolveRest((answered) => state.unsent.has(answered) && (kept || !disposed))
  }

  return {
    /** The open stream. */
    get run() {
      return run
    },
    /** Whether a stream is open or a client tool is running. */
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
    closeExpired,
    retryLastRun,
    mayLeave: mayGo,
    open,
    resetContinuationLimit,
    say,
    sendQueued,

    /** Reads a run that is open on the server from its first event. Resolves with whether there is such a run. */
    async rejoin(rejoin: BrokenRun): Promise<boolean> {
      if (run || disposed) return true
      const before = generation
      const end = await open('rejoin', undefined, { rejoin }).done
      return end.type !== 'aborted' || before !== generation
    },

    pause(): void {
      paused = true
    },

    dispose(): void {
      disposed = true
    },

    /** `undefined`: nothing is in the way. */
    mayStart() {
      if (run || disposed) return undefined
      const before = generation
      return kept?.mayStart?.()?.then((may) => may && before === generation && !run && !disposed)
    },

    /** After a reload: runs the client tools that the last run left to this client. Returns whether nothing stopped them meanwhile. */
    startTools(): boolean {
      const before = generation
      tools.run(store.batch(() => tools.claim(true)))
      return before === generation
    },

    /** Sends an answer if possible. Resolves with its outcome. */
    sendAnswer(answered: Answered, options?: RequestOptions): Promise<AnswerResult> {
      takeOptions(answered, options)
      const result = waiting.wait(answered)
      void kept?.keep()
      if (!(run && live.send(run, answered))) check()
      resolveRest()
      return result
    },

    resolveRest,

    /** Gives several answers as one: none is sent or reported before the last one is given. */
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

    /** An answer was withdrawn: its promise resolves as `closed`. */
    withdrawn: (answered: Answered) => waiting.resolve(answered, { status: 'closed', reason: 'withdrawn' }),

    /** Stores what the user did: a page may be left at any moment. Resolves with whether it is stored, if anything is. */
    keep: async (): Promise<boolean> => kept?.keep() ?? true,

    /** The conversation is replaced: no run of it is rejoined. */
    forget(): void {
      broken = undefined
    },

    /** Voids pending work: late events are ignored, running client tools are abandoned, checks are dropped. Call `resolveRest` afterwards. */
    void(): void {
      generation++
      // It may still be running. `broken` is kept, so that `retry()` first reads what the run has done.
      if (broken) session.stopOnServer(broken.connection, broken.cursor)
      run?.end({ type: 'aborted' })
      tools.giveUp()
    },

    /** The tab that ran the streams is gone: its run is broken, and its running tools may or may not have finished. */
    takeOver(error: CountersignError): void {
      store.batch(() => {
        dispatch({ type: 'run-closed', end: { type: 'failed', error } })
        tools.giveUp()
      })
      void kept?.keep()
    },
  }
}
