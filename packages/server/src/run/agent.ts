import {
  type AGUIEvent,
  CountersignError,
  type EditedPreview,
  type Interrupt,
  isRecord,
  type RunFinishedOutcome,
  StreamProcessor,
  type TokenUsage,
  toAGUIMessages,
  type UIMessage,
} from '@countersign/core'
import { fullSteps } from '@countersign/core/ag-ui'
import { closeRequests } from '../answers/close-thread.js'
import { type EditsToPreview, previewEdits } from '../answers/preview-edits.js'
import type { AnswerChannel } from '../channel/answer-channel.js'
import { threadsOf } from '../conversation/load-thread.js'
import { hasNews, type OpenThread } from '../conversation/open-thread.js'
import { showVersion } from '../conversation/show-version.js'
import { takenOver } from '../conversation/thread-writer.js'
import {
  checkOptions,
  method,
  object,
  type Rules,
  wholeFrom,
  withMethods,
} from '../encoding/check-options.js'
import { callHook, isLeft, type Outside } from '../encoding/hooks.js'
import { isId, randomId } from '../encoding/ids.js'
import { anySignal, sleep } from '../encoding/signals.js'
import { type SessionGrants, sessionGrants } from '../gate/grants.js'
import { findUnansweredCalls } from '../history/history.js'
import type { FullLimits } from '../limits.js'
import type { RunLog } from '../run-log/run-log.js'
import { agentRules, outputRules } from '../scope/agent-rules.js'
import { createChannel, eventSize, type Outlet } from '../scope/channel.js'
import { readOutputOptions } from '../scope/output.js'
import type { RunContext } from '../scope/run-context.js'
import { type AgentOptions, type AgentSettings, readSettings } from '../scope/settings.js'
import type { ThreadKey, ThreadStore } from '../threads/thread-store.js'
import { createDrain, type Drain, type DrainOptions } from './drain.js'
import { isRunOpen, openingOf, runIsOpen } from './open-runs.js'
import { MOST_AT_ONCE, recoverThreads } from './recover.js'
import {
  closing,
  driveRun,
  openRunThread,
  type RunInput,
  type RunOptions,
  type RunOrigin,
  scopeOutside,
} from './run.js'
import { runErrorEvent } from './run-error.js'
import { runDeadline } from './timeouts.js'

/**
 * A model, its tools, and the approvals between them. It keeps conversations where it was given `threads`. `Output` is the type of its
 * structured replies, where it was given `output`.
 */
export interface Agent<Output = unknown> {
  /**
   * One run, as AG-UI events. It starts when it is first read; a reader that stops early stops the run. A run is identified by subject,
   * thread and `runId`, and is open at most once in this process: if two were created before either was read, the second ends with
   * RUN_ERROR `run-open`. The id is free again once the run's end was read, or its reader has gone and it has ended.
   *
   * @throws CountersignError `invalid-option` if an option is invalid or `context.subject` is not a non-empty string; `invalid-argument` without
   * a thread, a run or messages, or with an id that no request may have (`limits.idLength`); `run-open` if the same run is already open
   * (`data.status` 409); `shutting-down` after `drain` (503).
   */
  run(input: RunInput, options?: RunOptions): RunEvents
  /**
   * The same run, awaited.
   *
   * @throws CountersignError as `run` does; `run-error` if the run ended with RUN_ERROR: `data.code` is its code, `data.messages` the messages
   * until then, `data.usage` what the model has used, `cause` the error itself.
   */
  generate<Result = Output>(input: RunInput, options?: RunOptions<Result>): Promise<GenerateResult<Result>>
  /**
   * Takes the thread of a run before the run starts, so that a transport can refuse the request: pass it to `run` as `thread`, or close
   * it. `undefined`: the agent has no threads.
   *
   * @throws CountersignError `thread-busy` (`data.status` 409) if another run is open on this thread, with its id in `data.runId`;
   * `thread-full` (507), `shutting-down` (503), `ledger-unavailable`; the reason of `gone`
   *
   * @param gone Aborts when its caller waits no longer.
   */
  openThread(input: RunInput, context?: RunContext, gone?: AbortSignal): Promise<OpenThread | undefined>
  /**
   * Whether a request brings messages or results that the stored conversation lacks. A request that is sent again does not. `false` without
   * threads.
   *
   * @throws CountersignError `ledger-unavailable`
   */
  hasNews(input: RunInput, context?: RunContext): Promise<boolean>
  /**
   * Shows another version of a conversation, to all pages, from now on: the branch that this message is on. `versions` of a loaded message
   * are the ids to choose from. Approval requests that are open on the branch shown before are cancelled.
   *
   * @throws CountersignError `thread-unknown` (`data.status` 404), `thread-busy` (409) while a run is open, `invalid-option` without
   * `threads`, `ledger-unavailable`
   */
  showVersion(
    version: { readonly threadId: string; readonly messageId: string },
    context?: RunContext,
    gone?: AbortSignal,
  ): Promise<void>
  /**
   * Removes a conversation for good: it, its session approvals and mandates, and its open approval requests, which are cancelled in the ledger.
   * A run that is open on it ends with `thread-unknown`. To call it again does no harm.
   *
   * @throws CountersignError `invalid-option` without `threads`; `ledger-unavailable` (`data.status` 503): call it again
   */
  removeThread(thread: { readonly threadId: string }, context?: RunContext, gone?: AbortSignal): Promise<void>
  /**
   * Ends runs whose process has died, for all threads: keeps what had arrived, closes calls that may have run as interrupted, and releases
   * the thread. Any process may call it at any time, for example at its start. Returns how many runs it has ended. A thread that can't be
   * read or closed is reported to `warn`, and not counted; the others are recovered. Nor is one with an approved call that may still run: a
   * later `recover` ends it, once the call's lease is over. `limit`: how many runs to end at most, the oldest
   * first; it goes on behind those that it cannot end. From 1 to 1,000, default 100.
   *
   * @throws CountersignError `invalid-option`, `shutting-down` after `drain`, `ledger-unavailable`
   */
  recover(options?: { readonly limit?: number | undefined }): Promise<number>
  /**
   * For the end of a process: takes no new runs, and resolves when the open ones have ended and their readers in this process have the end.
   * Then close the server. Answers for open runs are still taken.
   *
   * A handler for Node has handed the end to the operating system by then, and so has a WebSocket that has `bufferedAmount`. The body of a
   * `Response` was read to its end: what its server does with the last bytes is not known. A reader that has not taken the end after
   * `limits.stallTime` is not waited for.
   *
   * New runs are refused with 503 `shutting-down` and `Retry-After`. A run that is stopped after `within` ends with the same code, or with its
   * open approval requests if it was only waiting for them. Its thread is free at once, and any process can continue it. An approved tool
   * that runs then may finish within `approvals.wait`, or its own `timeout`.
   *
   * @example process.once('SIGTERM', () => agent.drain({ within: 20_000 }).then(() => process.exit(0)))
   */
  drain(options?: DrainOptions): Promise<void>
  /**
   * The preview of arguments that a user has edited, for a request of theirs that is open; `previewResponse` is its route.
   *
   * @throws CountersignError with the code of a refusal: `data.status` is 409, or 503 for `ledger-unavailable`
   */
  previewEdits(edits: EditsToPreview, context?: RunContext, gone?: AbortSignal): Promise<EditedPreview>
  /**
   * Calls a function of the application outside of a run, such as `prepare` of a transport, and waits for it at most until `gone` aborts,
   * `timeouts.run` is over, or `drain` stops what is open.
   *
   * @throws what the function throws; `run-timeout` or `shutting-down` (`data.status` 503), or the reason of `gone`
   */
  callHook<T>(hook: () => T | PromiseLike<T>, gone?: AbortSignal): Promise<T>
  /** The conversations, where the agent was given a store. */
  readonly threads: ThreadStore | undefined
  /** The live session grants, for the application's own server code; `grantsResponse` is their route. */
  readonly grants: SessionGrants
  /** The events of its runs, if a transport stores them. */
  readonly runLog: RunLog
  /** Delivers answers to its open runs. */
  readonly answerChannel: AnswerChannel
  /** How much callers can make it hold in memory, with defaults filled in. */
  readonly limits: FullLimits
  /** Reports what went wrong where nobody can be told: its option `warn`. */
  warn(message: string, error?: unknown): void
}

/** The events of a run. */
export interface RunEvents extends AsyncIterableIterator<AGUIEvent> {
  /**
   * Takes the next events that are there, without waiting: 64 KiB, and at most one event more. Transports send and store them together. An
   * iterator of your own may leave it out: its events are then sent and stored one by one.
   */
  waiting?(): readonly AGUIEvent[]
}

/** What a run added to a conversation. */
export interface GenerateResult<Output = unknown> {
  /** The whole conversation, as the user sees it. */
  readonly messages: readonly UIMessage[]
  /** The text of the run's own messages. */
  readonly text: string
  /** The structured reply. Absent without `output`, and if the run ended before the reply: it was stopped, or waits for answers. */
  readonly output?: Output
  readonly finishReason: string | undefined
  readonly outcome: 'success' | 'interrupt' | 'cancelled'
  /** Approval requests and other interrupts that wait for the user. */
  readonly interrupts: readonly Interrupt[]
  /** Calls that wait for the client. */
  readonly pendingToolCallIds: readonly string[]
  readonly usage: readonly TokenUsage[]
  readonly events: readonly AGUIEvent[]
}

/**
 * Creates an agent.
 *
 * @throws CountersignError `invalid-option` or `invalid-tool`, naming what is wrong.
 */
export function createAgent<Output = unknown>(options: AgentOptions<Output>): Agent<Output> {
  checkOptions('createAgent', options, agentRules)
  const settings = readSettings(options)
  const drain = createDrain(lastTime(settings), settings.warn)
  const start = (origin: RunOrigin, input: RunInput, runOptions: RunOptions = {}) => {
    const { context } = runOptions
    checkOptions('agent.run', runOptions, runRules)
    checkInput(input, limits)
    checkSubject(context?.subject)
    const output = readOutputOptions(runOptions) ?? settings.output
    const name = { owner: context?.subject ?? null, threadId: input.threadId, runId: input.runId }
    if (isRunOpen(settings.approvals.ledger, name)) throw runIsOpen(name)
    checkOpen(drain)
    const opened = openingOf(settings.approvals.ledger, name)
    const write = (outlet: Outlet<AGUIEvent>) => {
      const refusal = opened.start() ? drain.refusal() : runIsOpen(name)
      const { signal: draining, leave } = drain.enter()
      const own = { ...origin, refusal, draining }
      const run = driveRun({ ...settings, output }, input, runOptions, own, outlet).finally(opened.end)
      const delivered = run.then(() => runOptions.delivered ?? sleep(limits.stallTime, opened.left, false))
      delivered.then(leave, leave)
      return run
    }
    return opened.read(createChannel(write, { sizeOf: eventSize, lastWords: runErrorEvent, limits }))
  }
  const { threads, runLog, answerChannel, limits } = settings
  /** Work that calls hooks outside of a run: it is stopped like one. */
  const outside: Outside = async (work, gone) => {
    const deadline = runDeadline(settings.timeouts.run)
    const { signal, leave } = drain.enter()
    const stop = anySignal([deadline.signal, signal, gone])
    try {
      return await work(stop)
    } catch (error) {
      throw isLeft(error) ? stop.reason : error
    } finally {
      deadline.end()
      leave()
    }
  }
  const agent: Agent<Output> = {
    run: (input, runOptions) => start({ method: 'stream' }, input, runOptions),
    async generate<Result>(input: RunInput, runOptions: RunOptions<Result> = {}) {
      checkOptions('agent.generate', runOptions, runRules)
      let failure: unknown
      const onFailure = (error: unknown) => {
        failure = error
      }
      const { context, signal, disconnected } = runOptions
      const thread =
        runOptions.thread ?? (await agent.openThread(input, context, anySignal([signal, disconnected])))
      try {
        const run = start({ method: 'generate', onFailure }, input, { ...runOptions, thread })
        return await generate<Result>(
          { ...input, messages: thread?.messages ?? input.messages },
          run,
          () => failure,
        )
      } finally {
        // The run has done so, unless it did not start.
        await thread?.close().catch(() => {})
      }
    },
    async openThread(input, context, gone) {
      checkInput(input, limits)
      checkSubject(context?.subject)
      checkOpen(drain)
      return outside((stop) => openRunThread(settings, input, context, stop), gone)
    },
    async hasNews(input, context = {}) {
      checkSubject(context.subject)
      return settings.threads !== undefined && hasNews(settings.threads, settings, input, context)
    },
    async showVersion({ threadId, messageId }, context, gone) {
      checkSubject(context?.subject)
      const key = { owner: context?.subject ?? null, threadId }
      await outside((stop) => {
        const close = closing(scopeOutside(settings, { threadId }, context, stop))
        return showVersion(threadsOf({ threads }), key, messageId, settings, close)
      }, gone)
    },
    async removeThread({ threadId }, context, gone) {
      checkSubject(context?.subject)
      const owner = context?.subject ?? null
      await threadsOf({ threads }).remove({ owner, threadId })
      await outside((leave) => closeRequests({ settings, owner, threadId, leave }), gone)
      // Afterwards, so that it also ends what an answer has given meanwhile.
      if (owner !== null) await agent.grants.revoke(owner, { threadId }, gone)
    },
    async recover(recoverOptions = {}) {
      checkOptions('agent.recover', recoverOptions, { limit: wholeFrom(1, MOST_AT_ONCE) })
      const { limit = 100 } = recoverOptions
      if (threads === undefined) return 0
      const close = async ({ owner, threadId }: ThreadKey, abandoned: string) => {
        checkOpen(drain)
        const unsettled = await settings.approvals.ledger.unsettled(owner, threadId)
        // Until its claim lapses, nobody knows whether the call still runs: it could not be closed, and its thread would not be found again.
        if (unsettled.some(({ state }) => state.phase === 'claimed')) throw takenOver(undefined)
        const input = { threadId, runId: randomId('recovery_'), messages: [] }
        const context = owner === null ? {} : { subject: owner }
        const thread = await outside((stop) => openRunThread(settings, input, context, stop, abandoned))
        // Without the model: the run only closes calls.
        await agent.generate(input, { context, thread, maxSteps: 0 })
      }
      return recoverThreads(threads, limit, close, settings.warn)
    },
    async previewEdits(edits, context, gone) {
      checkSubject(context?.subject)
      return outside((stop) => previewEdits(scopeOutside(settings, edits, context, stop), edits), gone)
    },
    callHook: (hook, gone) => outside((stop) => callHook(stop, hook), gone),
    drain: (drainOptions) => drain.drain(drainOptions),
    threads,
    grants: sessionGrants(settings, outside),
    runLog,
    answerChannel,
    limits,
    warn: settings.warn,
  }
  return agent
}

/** Milliseconds that stores have, besides tools, to end a run that was stopped. */
const STORE_MS = 5000

/** How long a run may take to end once it was stopped, if its stores reply. */
function lastTime({ approvals, toolkit }: AgentSettings): number {
  const timeouts = toolkit.names.map((name) => toolkit.get(name)?.timeout ?? 0)
  return Math.max(approvals.waitMs, ...timeouts) + STORE_MS
}

/** @throws CountersignError `shutting-down` */
function checkOpen(drain: Drain): void {
  const refusal = drain.refusal()
  if (refusal) throw refusal
}

/**
 * Conversations are found by these ids: what is no text would be a conversation that all share, and what no request may have could not be
 * continued.
 */
function checkInput(input: Partial<RunInput> | undefined, { idLength }: FullLimits): void {
  const { threadId, runId, messages, resume = [], tools = [] } = input ?? {}
  const areRecords = (list: unknown) => Array.isArray(list) && list.every(isRecord)
  const ids = `text of 1 to ${idLength} characters (\`limits.idLength\`) without control characters`
  if (!isId(threadId, idLength)) throw invalidInput(`\`threadId\` has to be ${ids}`)
  if (!isId(runId, idLength)) throw invalidInput(`\`runId\` has to be ${ids}`)
  if (!areRecords(messages)) throw invalidInput('`messages` has to be a list of AG-UI messages')
  if (!messages.every(({ id }) => isId(id, idLength)))
    throw invalidInput(`the id of a message has to be ${ids}`)
  if (!areRecords(resume) || !areRecords(tools))
    throw invalidInput('`resume` and `tools` have to be lists of objects')
}

function invalidInput(expected: string): CountersignError {
  return new CountersignError('invalid-argument', `In the input of a run, ${expected}.`, { status: 400 })
}

/** Everything is keyed by the subject, so nothing that merely resembles one is accepted. */
function checkSubject(subject: unknown): void {
  if (subject === undefined || (typeof subject === 'string' && subject !== '')) return
  const message =
    'context.subject must be a non-empty string; leave it out where the application has no users.'
  throw new CountersignError('invalid-option', message, { option: 'context.subject' })
}

async function generate<Output>(
  input: RunInput,
  run: AsyncIterable<AGUIEvent>,
  failure: () => unknown,
): Promise<GenerateResult<Output>> {
  const processor = new StreamProcessor({ moreSteps: fullSteps })
  processor.dispatch({ type: 'MESSAGES_SNAPSHOT', messages: input.messages })
  const events: AGUIEvent[] = []
  for await (const event of run) {
    events.push(event)
    processor.dispatch(event)
  }
  const { messages } = processor.getSnapshot()
  const last = events.at(-1)
  if (last?.type !== 'RUN_FINISHED') {
    const { message, code, usage } =
      last?.type === 'RUN_ERROR'
        ? last
        : { message: 'The run did not finish.', code: undefined, usage: undefined }

    throw new CountersignError(
      'run-error',
      message,
      { code, method: 'generate', messages, events, usage: usage ?? [] },
      failure(),
    )
  }
  const { outcome } = last
  return {
    messages,
    text: events.map((event) => (event.type === 'TEXT_MESSAGE_CONTENT' ? event.delta : '')).join(''),
    // Validated with the schema of this type.
    ...(last.result !== undefined && { output: last.result as Output }),
    finishReason: typeof last.metadata?.finishReason === 'string' ? last.metadata.finishReason : undefined,
    outcome: outcome?.type ?? 'success',
    interrupts: outcome?.type === 'interrupt' ? outcome.interrupts : [],
    pendingToolCallIds: outcome === undefined ? openCalls(messages) : pendingOf(outcome),
    usage: last.usage ?? [],
    events,
  }
}

function pendingOf(outcome: RunFinishedOutcome): readonly string[] {
  return (outcome.type === 'success' && outcome.pendingToolCallIds) || []
}

/** A run whose input names no protocol version has no outcome if it leaves calls to its client. All others are closed then. */
function openCalls(messages: readonly UIMessage[]): readonly string[] {
  return findUnansweredCalls(toAGUIMessages(messages)).map(({ call }) => call.id)
}

const signal = withMethods('an AbortSignal', 'addEventListener', 'throwIfAborted')

const runRules: Rules<RunOptions> = {
  ...outputRules,
  signal,
  disconnected: signal,
  context: object,
  answers: withMethods('an answer queue', 'take', 'close'),
  thread: withMethods('what agent.openThread() resolves to', 'take', 'close'),
  delivered: withMethods('a promise', 'then'),
  hold: method,
  maxSteps: wholeFrom(0),
}
