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
import { closeCalls, readQuestion } from './questions.js'
import { createLangGraphReader, type LangGraphReader } from './reader.js'
import { threadUuid } from './thread-id.js'
import { type LangGraphState, readState } from './wire.js'

export interface LangGraphOptions extends FetchOptions {
  /** Where the LangGraph server is, such as `http://localhost:2024`. */
  apiUrl: string | URL
  /** The graph, or the assistant, that answers. */
  assistantId: string
  /**
   * Further members of each run's body (`config`, `context`, `metadata`), or a function that is asked each time. `forwardedProps` of the
   * client are put in too.
   */
  body?:
    | Readonly<Record<string, unknown>>
    | (() => Readonly<Record<string, unknown>> | Promise<Readonly<Record<string, unknown>>>)
    | undefined
  /**
   * Whether the graph's state comes along, without its messages, as the client's shared state. The server then sends its whole state,
   * messages included, with every step. Default false.
   */
  state?: boolean | undefined
}

/** A run of the server that was not read to its end. */
interface OpenRun {
  readonly input: RunAgentInput
  readonly reader: LangGraphReader
  /** The server's own id of it. */
  id: string
  /** What comes after it. */
  readonly rest: readonly Step[]
}

/**
 * A connection to a LangGraph server (Agent Server, `langgraph dev`, `langgraphjs dev`), unchanged, over the protocol of its `useStream`:
 * the decisions that `humanInTheLoopMiddleware` asks for, edits and reasons included; tools without an implementation, which run here;
 * and any other `interrupt(value)`, which is answered as an AG-UI interrupt with whatever the graph waits for.
 *
 * The server keeps the conversation. It is sent what it has not had: answers, by the id of their interrupt, and new messages. Where that is
 * not known (after a reload, a failure or a stop) its state is asked for first, so what it has done already is shown and not done again.
 * The decisions of one interrupt go out together. A server with LangChain.js drops the approved calls of a turn in which another was
 * rejected; they end as `cancelled`.
 *
 * @example const client = new ChatClient({ connection: langGraph({ apiUrl: 'http://localhost:2024', assistantId: 'agent' }) })
 * @throws CountersignError as `fetchServerSentEvents`; `http-status` 422 while another run of the thread is under way
 */
export function langGraph(options: LangGraphOptions): Connection {
  const { assistantId, maxEventBytes, state: withState = false } = options
  const base = String(options.apiUrl).replace(/\/+$/, '')
  /** Threads whose standing is known, since their last run was read to its end. */
  const standings = new Map<string, Standing>()
  /** Threads that a run was begun in. */
  const begun = new Set<string>()
  const open = new Map<string, OpenRun>()
  /** Runs that the person stopped, until the server has stopped them. */
  const stopping = new Map<string, Promise<unknown>>()

  const urlOf = async (threadId: string) => `${base}/threads/${await threadUuid(threadId)}`

  async function stateOf(url: string, { headers, signal }: ConnectOptions): Promise<LangGraphState> {
    const asked = { method: 'GET', headers: { ...headers, accept: 'application/json' }, signal }
    const response = await fetchResponse(`${url}/state`, options, asked).catch((error: unknown) => {
      if (error instanceof CountersignError && error.data.status === 404) return undefined
      throw error
    })
    return readState(await response?.json())
  }

  /** What there is to run, and what the server has that is to be shown first. */
  async function plan(input: RunAgentInput, url: string, connect: ConnectOptions) {
    const { threadId, messages, tools = [] } = input
    const standing = standings.get(threadId)
    const isFresh = !begun.has(threadId) && messages.length === 1
    const first = isFresh ? { questions: [], openCalls: [], said: undefined } : standing
    const steps = first && planNew(input, first)
    if (steps) return { steps }
    const state = await stateOf(url, connect)
    const names = new Set(tools.map(({ name }) => name))
    const calls = lastCallsOf(state.messages)
    const questions = state.interrupts.map((one) => readQuestion(one, calls, names))
    const now = { questions, openCalls: openCallsOf(state.messages), said: undefined }
    const fresh = planNew(input, now, state)
    if (fresh) return { steps: fresh }
    const again = planAgain(input, state, open.has(threadId))
    return again[0]?.type === 'input' ? { steps: again } : { steps: again, missed: state }
  }

  /** `closed`: calls that get their last word with it. */
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
    // without the signal: a run that has begun has to be told that it ends
    return fetchResponse(`${url}/runs/stream`, options, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json', accept: eventStream },
      body: JSON.stringify(body),
    })
  }

  /** Ends a run of the server; the next one of its thread waits for that. */
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
    // one that has ended meanwhile is not there to be stopped
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
   * Finds out whether a stream told its run to the end: nothing in it says so. Of calls that are left open only the server's state tells
   * whether they were left, or the step that runs them is missing.
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

  /** Runs the steps one after the other. `before`: events that come first, once the server has taken the request. */
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
      begun.add(input.threadId)
      const run: OpenRun = { input, reader, id: runIdOf(response), rest: steps.slice(at + 1) }
      open.set(input.threadId, run)
      reader.begin()
      yield at === 0 ? [...before, ...events] : events
      yield* eventsOf(response, url, run, connect)
      if (!connect.signal.aborted) await checkEnd(reader, url, connect)
      if (connect.signal.aborted || reader.isFailed) return
    }
  }

  /** The run is over: what it left is known from now on. */
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
      const response = await fetchResponse(`${url}/runs/${run.id}/stream`, options, asked)
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

/** The server tells a run's id in `Content-Location`, and in the first event where a page may not read that header. */
function runIdOf({ headers }: Response): string {
  const place = headers.get('content-location') ?? ''
  return place.slice(place.lastIndexOf('/') + 1)
}

function runIdIn(data: unknown): string | undefined {
  return isRecord(data) && typeof data.run_id === 'string' ? data.run_id : undefined
}
