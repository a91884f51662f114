import {
  type AGUIEvent,
  CountersignError,
  type Interrupt,
  StreamProcessor,
  type TokenUsage,
  type UIMessage,
} from '@countersign/core'
import { fullSteps } from '@countersign/core/ag-ui'
import type { AnswerChannel } from '../channel/answer-channel.js'
import { type OpenThread, openThread } from '../conversation/open-thread.js'
import { type SessionGrants, sessionGrants } from '../gate/session-grants.js'
import type { FullLimits } from '../limits.js'
import type { RunLog } from '../run-log/run-log.js'
import { createChannel, type Outlet } from '../scope/channel.js'
import { eventSize } from '../scope/event-size.js'
import type { RunContext } from '../scope/run-context.js'
import { type AgentOptions, readSettings } from '../scope/settings.js'
import type { ThreadStore } from '../threads/thread-store.js'
import { isRunOpen, openingOf, runIsOpen } from './open-runs.js'
import { recoverThreads } from './recover.js'
import { driveRun, type RunInput, type RunOptions, type RunOrigin } from './run.js'
import { runErrorEvent } from './run-error.js'

/** A model, its tools, and the approvals between them. It keeps conversations where it was given `threads`. */
export interface Agent {
  /**
   * One run, as AG-UI events. It starts when it is first read; a reader that stops early stops the run. A run is identified by subject,
   * thread and `runId`, and is open at most once in this process: if two were created before either was read, the second ends with
   * RUN_ERROR `run-open`. The id is free again once the run's end was read, or its reader has gone and it has ended.
   *
   * @throws CountersignError `invalid-option` if `context.subject` is given and not a non-empty string; `run-open` if the same run is
   * already open (`data.status` 409).
   */
  run(input: RunInput, options?: RunOptions): RunEvents
  /**
   * The same run, awaited.
   *
   * @throws CountersignError `run-error` if the run ended with RUN_ERROR: `data.code` is its code, `data.messages` the messages
   * until then, `data.usage` what the model has used, `cause` the error itself.
   */
  generate(input: RunInput, options?: RunOptions): Promise<GenerateResult>
  /**
   * Takes the thread of a run before the run starts, so that a transport can refuse the request: pass it to `run` as `thread`, or close
   * it. `undefined`: the agent has no threads.
   *
   * @throws CountersignError `thread-busy` (`data.status` 409) if another run is open on this thread, with its id in `data.runId`;
   * `thread-full` (413), `ledger-unavailable`
   */
  openThread(input: RunInput, context?: RunContext): Promise<OpenThread | undefined>
  /**
   * Ends runs whose process has died, for all threads: keeps what had arrived, closes calls that may have run as interrupted, and releases
   * the thread. Any process may call it at any time, for example at its start. Returns how many runs it has ended.
   */
  recover(options?: { readonly limit?: number | undefined }): Promise<number>
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
export interface GenerateResult {
  /** The whole conversation, as the user sees it. */
  readonly messages: readonly UIMessage[]
  /** The text of the run's own messages. */
  readonly text: string
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
export function createAgent(options: AgentOptions): Agent {
  const settings = readSettings(options)
  const start = (origin: RunOrigin, input: RunInput, runOptions: RunOptions = {}) => {
    const { context, maxSteps } = runOptions
    checkSubject(context?.subject)
    checkSteps(maxSteps)
    const name = { owner: context?.subject ?? null, threadId: input.threadId, runId: input.runId }
    if (isRunOpen(settings.approvals.ledger, name)) throw runIsOpen(name)
    const opened = openingOf(settings.approvals.ledger, name)
    const write = (outlet: Outlet<AGUIEvent>) => {
      const isTwice = !opened.start()
      return driveRun(settings, input, runOptions, { ...origin, isTwice }, outlet).finally(opened.end)
    }
    return opened.read(createChannel(write, { sizeOf: eventSize, lastWords: runErrorEvent }))
  }
  const { threads, runLog, answerChannel, limits } = settings
  const agent: Agent = {
    run: (input, runOptions) => start({ method: 'stream' }, input, runOptions),
    async generate(input, runOptions = {}) {
      let failure: unknown
      const onFailure = (error: unknown) => {
        failure = error
      }
      const thread = runOptions.thread ?? (await agent.openThread(input, runOptions.context))
      try {
        const run = start({ method: 'generate', onFailure }, input, { ...runOptions, thread })
        return await generate({ ...input, messages: thread?.messages ?? input.messages }, run, () => failure)
      } finally {
        // The run has done so, unless it did not start.
        await thread?.close().catch(() => {})
      }
    },
    async openThread(input, context) {
      checkSubject(context?.subject)
      return threads && openThread(threads, settings, input, context)
    },
    async recover({ limit = 100 } = {}) {
      if (threads === undefined) return 0
      return recoverThreads(threads, limit, async (input, context) => {
        const thread = await agent.openThread(input, context)
        // Without the model: the run only closes calls.
        for await (const _ of agent.run(input, { context, thread, maxSteps: 0 }));
      })
    },
    threads,
    grants: sessionGrants(settings),
    runLog,
    answerChannel,
    limits,
  }
  return agent
}

/** Everything is keyed by the subject, so nothing that merely resembles one is accepted. */
function checkSubject(subject: unknown): void {
  if (subject === undefined || (typeof subject === 'string' && subject !== '')) return
  throw new CountersignError(
    'invalid-option',
    'context.subject must be a non-empty string; leave it out where the application has no users.',
    { option: 'context.subject' },
  )
}

function checkSteps(maxSteps: number | undefined): void {
  if (maxSteps === undefined || (Number.isInteger(maxSteps) && maxSteps >= 0)) return
  throw new CountersignError('invalid-option', 'maxSteps of a run must be 0 or more, or left out.', {
    option: 'maxSteps',
  })
}

async function generate(
  input: RunInput,
  run: AsyncIterable<AGUIEvent>,
  failure: () => unknown,
): Promise<GenerateResult> {
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
    text: textOf(events),
    finishReason: typeof last.metadata?.finishReason === 'string' ? last.metadata.finishReason : undefined,
    outcome: outcome?.type ?? 'success',
    interrupts: outcome?.type === 'interrupt' ? outcome.interrupts : [],
    pendingToolCallIds: (outcome?.type === 'success' && outcome.pendingToolCallIds) || [],
    usage: last.usage ?? [],
    events,
  }
}

function textOf(events: readonly AGUIEvent[]): string {
  return events.map((event) => (event.type === 'TEXT_MESSAGE_CONTENT' ? event.delta : '')).join('')
}
