import type { Connection, ConnectOptions, FetchOptions } from '@countersign/client'
import { eventStream, fetchResponse, responseBody } from '@countersign/client/connection-kit'
import {
  type AGUIEvent,
  CountersignError,
  type RunAgentInput,
  readServerSentEvents,
  type UIMessage,
} from '@countersign/core'
import { lateAnswers, needsAnswer, passedResults, withOutcomes, withoutRepeats } from './answers.js'
import { RUN_ID_HEADER } from './chunk.js'
import type { AiSdkMessage } from './message.js'
import { type AiSdkReader, createAiSdkReader } from './reader.js'
import { toAiSdkMessages } from './to-messages.js'

export interface AiSdkOptions extends FetchOptions {
  /** The AI SDK route. Default `/api/chat`, as in the SDK. */
  api?: string | URL | undefined
  /** Additional members of each request's body, or a function called for each. The client's `forwardedProps` are added too. */
  body?:
    | Readonly<Record<string, unknown>>
    | (() => Readonly<Record<string, unknown>> | Promise<Readonly<Record<string, unknown>>>)
    | undefined
  /**
   * Whether a run whose stream broke off can be rejoined, by a GET of `{api}/{threadId}/stream`: `replay` if the route sends
   * the stream from the beginning, as the SDK's own do, `rest` if it continues with what was not read yet, as `resumeAiSdkChat` does.
   * Default: no.
   */
  resume?: 'replay' | 'rest' | undefined
}

/**
 * A connection to an unmodified AI SDK 7 route (`streamText(...).toUIMessageStreamResponse()`): approvals, chained approvals,
 * denials with a reason, client tools. Signatures and provider metadata are sent back unchanged.
 *
 * The AI SDK supports neither edited arguments nor session approvals: requests over this connection offer neither, and an
 * edit is refused before anything is sent. It accepts answers only in the last message; if the user has sent another message
 * since, they are sent in a separate request, which is read until their results have arrived. Its routes keep no record of
 * answers, so `retry()` of a run that broke off or was stopped after an approval may run the call again; nothing else repeats one: every
 * other request says of such a call that it may or may not have run.
 *
 * @example const client = new ChatClient({ connection: aiSdk({ api: '/api/chat' }) })
 * @throws CountersignError as `fetchServerSentEvents`, and `invalid-argument` for edited arguments in a stored conversation
 */
export function aiSdk(options: AiSdkOptions = {}): Connection {
  const { api = '/api/chat', resume } = options
  /** The last run of each conversation, in case it breaks off. */
  const runs = new Map<
    string,
    { readonly runId: string; readonly reader: AiSdkReader; readonly serverRun: string | null }
  >()
  /** The last user message of each conversation whose request the server has accepted. */
  const answered = new Map<string, string>()

  async function post(
    messages: readonly AiSdkMessage[],
    { threadId: id, forwardedProps }: RunAgentInput,
    { headers, signal }: ConnectOptions,
  ): Promise<Response> {
    const last = messages.at(-1)
    const again = last?.role === 'user' && answered.get(id) === last.id
    const own = typeof options.body === 'function' ? await options.body() : options.body
    const body = {
      ...own,
      ...(isObject(forwardedProps) && forwardedProps),
      id,
      messages,
      trigger: again ? 'regenerate-message' : 'submit-message',
      ...(last?.role === 'assistant' && { messageId: last.id }),
    }
    const response = await fetchResponse(api, options, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body,
      signal,
    })
    if (last?.role === 'user') answered.set(id, last.id)
    return response
  }

  /** Chunks as they arrive; those of one read together. */
  async function* chunksOf(
    response: Response,
    { signal }: ConnectOptions,
  ): AsyncGenerator<readonly unknown[]> {
    const { maxEventBytes } = options
    const body = responseBody(api, response, eventStream)
    for await (const batch of readServerSentEvents(body, { maxEventBytes, signal, done: '[DONE]' }))
      yield batch.map(({ data }) => data)
  }

  /** The events of a stream, without its first `skip` chunks, which were already read. */
  async function* eventsOf(response: Response, connect: ConnectOptions, reader: AiSdkReader, skip = 0) {
    let left = skip
    try {
      for await (const chunks of chunksOf(response, connect)) {
        const events: AGUIEvent[] = []
        let fault: { readonly error: unknown } | undefined
        try {
          for (const [at, chunk] of chunks.entries())
            if (left-- <= 0) events.push(...reader.read(chunk, at < chunks.length - 1))
        } catch (error) {
          fault = { error }
          if (!reader.isDone) events.push(...reader.end())
        }
        // Events before the fault still count.
        yield events
        if (fault) throw fault.error
      }
    } catch (error) {
      // The connection broke after the server had finished.
      if (!reader.isDone) throw error
    }
    if (!connect.signal.aborted) yield reader.end()
  }

  /** Sends the answers of one message and reads their results; the model's reply to them is discarded. */
  async function* deliver(messages: readonly AiSdkMessage[], input: RunAgentInput, connect: ConnectOptions) {
    const continued = messages.at(-1)
    const { threadId, runId } = input
    const reader = createAiSdkReader({ threadId, runId: `${runId}/${continued?.id}`, continued })
    const response = await post(messages, input, connect)
    for await (const chunks of chunksOf(response, connect)) {
      for (const chunk of chunks) {
        if (isObject(chunk) && (chunk.type === 'start-step' || chunk.type === 'finish')) return reader
        yield reader.read(chunk)
      }
    }
    return reader
  }

  const connection: Connection = {
    repeatsAnswers: true,
    async *connect(input, connect) {
      refuseEdits(connect.messages)
      const shown = withoutRepeats(connect.messages, input.resume)
      let messages: readonly AiSdkMessage[] = toAiSdkMessages(shown)
      const { threadId, runId } = input
      let isStarted = false
      const start = (reader: AiSdkReader) => {
        if (isStarted) return []
        isStarted = true
        return reader.start()
      }
      for (const at of lateAnswers(shown, messages)) {
        const told = deliver(messages.slice(0, at + 1), input, connect)
        let step = await told.next()
        yield start(createAiSdkReader({ threadId, runId }))
        for (; !step.done; step = await told.next()) {
          yield step.value
          if (step.value.some(({ type }) => type === 'RUN_ERROR')) return
        }
        messages = withOutcomes(messages, at, step.value.outcomes)
      }
      const last = messages.at(-1)
      const reader = createAiSdkReader({
        threadId,
        runId,
        continued: last?.role === 'assistant' ? last : undefined,
      })
      const opening = [...start(reader), ...passedResults(shown, runId)]
      if (needsAnswer(last)) return yield [...opening, { type: 'RUN_FINISHED', threadId, runId }]
      const response = await post(messages, input, connect)
      runs.set(threadId, { runId, reader, serverRun: response.headers.get(RUN_ID_HEADER) })
      yield opening
      yield* eventsOf(response, connect, reader)
    },
  }
  if (!resume) return connection
  return {
    ...connection,
    async *rejoin({ threadId, runId }, connect) {
      const broken = runs.get(threadId)
      if (broken?.runId !== runId) return
      const { headers, signal } = connect
      const asked = { method: 'GET', headers: { ...headers, accept: eventStream }, signal }
      const { reader, serverRun } = broken
      // Without the header, as on a page of another origin, `after` alone tells our route not to send the beginning again.
      const run = serverRun === null ? '' : `runId=${serverRun}&`
      const rest = resume === 'rest' ? `${run}after=${reader.count}` : undefined
      const response = await fetchResponse(streamUrl(api, threadId, rest), options, asked)
      if (response.status === 204) return
      yield* eventsOf(response, connect, reader, resume === 'replay' ? reader.count : 0)
    },
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function streamUrl(api: string | URL, threadId: string, rest?: string): string {
  const url = String(api)
  const end = /[?#]|$/.exec(url)?.index ?? url.length
  const base = `${url.slice(0, end).replace(/\/$/, '')}/${encodeURIComponent(threadId)}/stream${url.slice(end)}`
  return rest ? `${base}${base.includes('?') ? '&' : '?'}${rest}` : base
}

/** Dropping the edits would approve something else. */
function refuseEdits(messages: readonly UIMessage[]): void {
  for (const { parts } of messages) {
    for (const part of parts) {
      if (part.type !== 'tool-call' || part.state !== 'approval-responded') continue
      const { approved, input } = part.approval ?? {}
      if (!approved || input === undefined) continue
      throw new CountersignError(
        'invalid-argument',
        `The arguments of "${part.name}" were edited, and the AI SDK has no place for that: answer without edits, or deny with the reason what to change.`,
        { toolCallId: part.id },
      )
    }
  }
}
