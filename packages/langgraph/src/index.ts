import type { Connection, ConnectOptions, FetchOptions } from '@countersign/client'
import { eventStream, fetchResponse, responseBody } from '@countersign/client/connection-kit'
import {
  type AGUIEvent,
  CountersignError,
  isRecord,
  type RunAgentInput,
  readServerSentEvents,
} from '@countersign/core'
import { lastCallsOf, openCallsOf, planAgain, planNew, type Standing, type Step } from './plan.js'
import { closeCalls, readQuestions } from './questions.js'
import { createLangGraphReader, type LangGraphReader } from './reader.js'
import { threadUuid } from './thread-id.js'
import { type LangGraphState, readState } from './wire.js'

export interface LangGraphOptions extends FetchOptions {
  /** The address of the LangGraph server, such as `http://localhost:2024`. */
  apiUrl: string | URL
  /** The graph, or the assistant, that answers. */
  assistantId: string
  /**
   * Additional members of each run's body (`config`, `context`, `metadata`), or a function that is called each time. `forwardedProps` of
   * the client are added.
   */
  body?:
    | Readonly<Record<string, unknown>>
    | (() => Readonly<Record<string, unknown>> | Promise<Readonly<Record<string, unknown>>>)
    | undefined
  /**
   * Whether the client's shared state gets the graph's state, without its messages. The server then sends its whole state, messages
   * included, with every step. Default false.
   */
  state?: boolean | undefined
}

/** A run of the server that was not read to its end. */
interface OpenRun {
  readonly input: RunAgentInput
  readonly reader: LangGraphReader
  /** The server's own id of the run. */
  id: string
  /** The steps after it. */
  readonly rest: readonly Step[]
}

/**
 * A connection to an unmodified LangGraph server (Agent Server, `langgraph dev`, `langgraphjs dev`), over the protocol of its `useStream`:
 * the decisions that `humanInTheLoopMiddleware` requests, with edits and reasons; tools without an implementation, which run here;
 * and any other `interrupt(value)`, which is answered as an AG-UI interrupt with whatever the graph expects.
 *
 * The server stores the conversation. It is sent only what it does not have: answers, by interrupt id, and new messages. If that is
 * unknown (with the first request, after a failure or a stop), its state is read first, so that what it has already done is shown, not repeated.
 * All decisions of one interrupt are sent together. LangChain.js servers drop the approved calls of a turn in which another was
 * rejected; they end as `cancelled`.
 *
 * @example const client = new ChatClient({ connection: langGraph({ apiUrl: 'http://localhost:2024', assistantId: 'agent' }) })
 * @throws CountersignError like `fetchServerSentEvents`; `http-status` 422 while another run of the thread is open
 */
export function langGraph(options: LangGraphOptions): Connection {
  const { assistantId, maxEventBytes, state: withState = false } = options
  const base = String(options.apiUrl).replace(/\/+$/, '')
  /** Threads whose standing is known, because their last run was read to its end. */
  const standings = new Map<string, Standing>()
  const open = new Map<string, OpenRun>()
  /** Runs that the user stopped, until the server has stopped them. */
  const stopping = new Map<string, Promise<unknown>>()

  const urlOf = async (threadId: string) => `${base}/threads/${await threadUuid(threadId)}`

  async function stateOf(url: string, { headers, signal }: ConnectOptions): Promise<LangGraphState> {
    const asked = { method: 'GET', headers: { ...headers, accept: 'application/json' }, signal }
    const response = await fetchResponse(`${url}/state`, options, asked).catch(ifThere)
    return readState(await response?.json())
  }

  /** The steps to run, and what the server has that must be shown first. */
  async function plan(input: RunAgentInput, url: string, connect: ConnectOptions) {
    const { threadId, tools = [] } = input
    const standing = standings.get(threadId)
    const steps = standing && planNew(input, standing)
    if (steps) return { steps }
    const state = await stateOf(url, connect)
    const names = new Set(tools.map(({ name }) => name))
    const calls = lastCallsOf(state.messages)
    const questions = readQuestions(state.interrupts, calls, names)
    const now = { questions, openCalls: openCallsOf(state.messages), said: undefined }
    const fresh = planNew(input, now, state)
    if (fresh) return { steps: fresh }
    const again = planAgain(input, state, open.has(threadId))
    return again[0]?.type === 'input' ? { steps: again } : { steps: again, missed: state }
  }

  /** `closed`: calls that get a final result with it. */
  async function post(
    step: Step,
    closed: readonly string[],
    url: string,
    { forwardedProps }: RunAgentInput,
    { headers }: ConnectOptions,
  ) {
    const own = typeof options.body === 'function' ? await options.body() : options.body
    const body = {
      ...own,
      ...(isRecord(forwardedProps) && forwardedProps),
      assistant_id: assistantId,
      ...bodyOfStep(step, closed),
      stream_mode: ['messages-tuple', 'updates', ...(withState ? ['values'] : [])],
      stream_resumable: true,
      on_disconnect: 'continue',
      multitask_strategy: 'reject',
      if_not_exists: 'create',
    }
    // Without the signal: a run that has started must be cancelled on the server.
    return fetchResponse(`${url}/runs/stream`, options, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json', accept: eventStream },
      body,
    })
  }

  /** Cancels a run of the server; the thread's next run waits for that. */
  function cancel(
    { id, input: { threadId } }: OpenRun,
    url: string,
    headers: ConnectOptions['headers'],
  ): void {
    const asked = {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      keepalive: true,
    }
    // A run that has already ended can't be cancelled.
    const stopped = fetchResponse(`${url}/runs/${id}/cancel?wait=true`, options, asked).catch(() => {})
    stopping.set(threadId, stopped)
    open.delete(threadId)
  }

  async function* eventsOf(response: Response, url: string, run: OpenRun, connect: ConnectOptions) {
    const { signal, headers, onEventId } = connect
    const stop = () => cancel(run, url, headers)
    if (signal.aborted) return stop()
    signal.addEventListener('abort', stop)
    try {
      const body = responseBody(url, response, eventStream)
      for await (const batch of readServerSentEvents(body, { maxEventBytes, signal })) {
        for (const { event, data } of batch) if (event === 'metadata') run.id = runIdIn(data) ?? run.id
        yield batch.flatMap(({ event, data }) => run.reader.read(event, data))
        const id = batch.at(-1)?.id
        if (id !== undefined) onEventId?.(id)
      }
    } finally {
      signal.removeEventListener('abort', stop)
    }
  }

  /**
   * Checks whether a stream ended with its run, because nothing in the stream says so. If calls are still open, only the server's state
   * shows whether they were left open, or the stream lacks the step that ran them.
   *
   * @throws CountersignError `truncated-stream`
   */
  async function checkEnd(reader: LangGraphReader, url: string, connect: ConnectOptions): Promise<void> {
    const { isCut, isFailed, openCalls, questions } = reader
    if (isCut) throw cut()
    if (isFailed || openCalls.length === 0 || questions.length > 0) return
    const state = await stateOf(url, connect)
    const left = openCallsOf(state.messages)
    const wentOn = state.messages.length > 0 && !openCalls.every((id) => left.includes(id))
    if (wentOn || state.isUnfinished) throw cut()
  }

  /** Runs the steps in sequence. `before`: events to yield first, once the server has accepted the request. */
  async function* take(
    steps: readonly Step[],
    input: RunAgentInput,
    reader: LangGraphReader,
    url: string,
    connect: ConnectOptions,
    before: readonly AGUIEvent[] = [],
  ) {
    for (const [at, step] of steps.entries()) {
      const { ids, events } = step.type === 'input' ? reader.abandon(step.abandoned) : nothingLeft
      const response = await post(step, ids, url, input, connect)
      const run: OpenRun = { input, reader, id: runIdOf(response), rest: steps.slice(at + 1) }
      open.set(input.threadId, run)
      reader.begin()
      yield at === 0 ? [...before, ...events] : events
      yield* eventsOf(response, url, run, connect)
      if (!connect.signal.aborted) await checkEnd(reader, url, connect)
      if (connect.signal.aborted || reader.isFailed) return
    }
  }

  /** The run is over: the thread's standing is known from now on. */
  function end({ threadId, messages }: RunAgentInput, reader: LangGraphReader): readonly AGUIEvent[] {
    const events = reader.end()
    open.delete(threadId)
    const said = messages.findLast(({ role }) => role === 'user')?.id
    const { questions, openCalls, isFailed } = reader
    if (!isFailed) standings.set(threadId, { questions, openCalls, said })
    return events
  }

  return {
    async *connect(input, connect) {
      const { threadId } = input
      const url = await urlOf(threadId)
      await stopping.get(threadId)
      stopping.delete(threadId)
      const { steps, missed } = await plan(input, url, connect)
      standings.delete(threadId)
      const reader = createLangGraphReader(input)
      if (missed) yield [...reader.start(), ...reader.catchUp(missed)]
      yield* take(steps, input, reader, url, connect, missed ? [] : reader.start())
      if (!connect.signal.aborted) yield end(input, reader)
    },
    async *rejoin({ threadId, runId, lastEventId = '-1' }, connect) {
      const run = open.get(threadId)
      if (run?.input.runId !== runId) return
      const { input, reader, rest } = run
      const url = await urlOf(threadId)
      const headers = { ...connect.headers, accept: eventStream, 'last-event-id': lastEventId }
      const asked = { method: 'GET', headers, signal: connect.signal }
      const response = await fetchResponse(`${url}/runs/${run.id}/stream`, options, asked).catch(ifThere)
      if (!response) return
      let isEmpty = true
      for await (const events of eventsOf(response, url, run, connect)) {
        isEmpty = false
        yield events
      }
      if (isEmpty || connect.signal.aborted) return
      await checkEnd(reader, url, connect)
      if (!reader.isFailed) yield* take(rest, input, reader, url, connect)
      if (!connect.signal.aborted) yield end(input, reader)
    },
  }
}

/** The server has no such thing. */
function ifThere(error: unknown): undefined {
  if (error instanceof CountersignError && error.data.status === 404) return undefined
  throw error
}

function cut(): CountersignError {
  return new CountersignError('truncated-stream', 'The stream ended before its run did. Try again.')
}

const nothingLeft = { ids: [], events: [] }

function bodyOfStep(step: Step, closed: readonly string[]) {
  switch (step.type) {
    case 'resume':
      return { command: { resume: Object.fromEntries(step.answers.map(({ id, value }) => [id, value])) } }
    case 'input':
      return { input: { messages: [...closeCalls(closed), ...step.messages] } }
    case 'go-on':
      return { input: null }
    default:
      return step satisfies never
  }
}

/** The server sends a run's id in `Content-Location`, and in the first event if a page can't read that header. */
function runIdOf({ headers }: Response): string {
  const place = headers.get('content-location') ?? ''
  return place.slice(place.lastIndexOf('/') + 1)
}

function runIdIn(data: unknown): string | undefined {
  return isRecord(data) && typeof data.run_id === 'string' ? data.run_id : undefined
}
