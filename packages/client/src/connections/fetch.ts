import {
  type ByteSource,
  CountersignError,
  type RunAgentInput,
  readJsonLines,
  readServerSentEvents,
} from '@countersign/core'
import type { Connection, ConnectOptions, RunCursor } from './connection.js'

/** Options of the connections over `fetch`. */
export interface FetchOptions {
  /** Headers of each request, or a function that is asked each time (for a token that expires). */
  headers?:
    | Readonly<Record<string, string>>
    | (() => Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>)
    | undefined
  /** As in `RequestInit`. Default: the platform's, `same-origin`. */
  credentials?: RequestCredentials | undefined
  /** Instead of the global `fetch`. */
  fetch?: typeof globalThis.fetch | undefined
  /** How many UTF-16 units one event may have. Default 16 MiB. */
  maxEventBytes?: number | undefined
}

export interface ServerSentEventsOptions extends FetchOptions {
  /**
   * Whether the server keeps its runs, so that one whose stream broke off can be taken up: a GET of the same URL with `threadId`,
   * `runId` and the header `Last-Event-ID`, answered with the rest of the events, or with 204. Default: no.
   */
  rejoin?: boolean | undefined
}

/**
 * Posts `RunAgentInput` to `url` and reads the answer as server-sent events: the transport of AG-UI 1.0.
 * Fails with `http-status`, `not-an-event-stream`, `connection-failed`, `malformed-event`, `event-too-large` or `truncated-stream`.
 */
export function fetchServerSentEvents(url: string | URL, options: ServerSentEventsOptions = {}): Connection {
  const connection: Connection = {
    async *connect(input, connect) {
      yield* readEvents(await post(url, input, 'text/event-stream', options, connect), options, connect)
    },
  }
  if (!options.rejoin) return connection
  return {
    ...connection,
    async *rejoin(cursor, connect) {
      const response = await get(url, cursor, options, connect)
      if (response.status !== 204) yield* readEvents(bodyOf(url, response), options, connect)
    },
  }
}

async function* readEvents(
  body: ByteSource,
  { maxEventBytes }: FetchOptions,
  { signal, onEventId }: ConnectOptions,
) {
  for await (const batch of readServerSentEvents(body, { maxEventBytes, signal })) {
    yield batch.map((event) => event.data)
    const id = batch.at(-1)?.id
    if (id !== undefined) onEventId?.(id)
  }
}

/** The same with one JSON event a line (`application/x-ndjson`), for servers and proxies that do not do event streams. */
export function fetchHttpStream(url: string | URL, options: FetchOptions = {}): Connection {
  return {
    async *connect(input, connect) {
      const body = await post(url, input, 'application/x-ndjson', options, connect)
      yield* readJsonLines(body, { maxEventBytes: options.maxEventBytes, signal: connect.signal })
    },
  }
}

async function post(
  url: string | URL,
  input: RunAgentInput,
  accept: string,
  options: FetchOptions,
  { signal, headers }: ConnectOptions,
): Promise<ByteSource> {
  const response = await ask(url, options, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json', accept },
    body: JSON.stringify(input),
    signal,
  })
  return bodyOf(url, response, accept)
}

/** Asks for the rest of a run. */
function get(
  url: string | URL,
  { threadId, runId, lastEventId }: RunCursor,
  options: FetchOptions,
  { signal, headers }: ConnectOptions,
): Promise<Response> {
  const query = new URLSearchParams({ threadId, runId })
  const position = lastEventId === undefined ? {} : { 'last-event-id': lastEventId }
  const separator = String(url).includes('?') ? '&' : '?'
  return ask(`${url}${separator}${query}`, options, {
    method: 'GET',
    headers: { ...headers, accept: 'text/event-stream', ...position },
    signal,
  })
}

async function ask(url: string | URL, options: FetchOptions, request: RequestInit): Promise<Response> {
  const own = typeof options.headers === 'function' ? await options.headers() : options.headers
  const { credentials, fetch = globalThis.fetch } = options
  const init = {
    ...request,
    headers: { ...own, ...(request.headers as Record<string, string>) },
    ...(credentials && { credentials }),
  }
  const response = await fetch(url, init).catch((cause: unknown) => {
    const message = `[${request.method}] "${url}": the server could not be reached. Try again.`
    throw new CountersignError('connection-failed', message, {}, cause)
  })
  if (!response.ok) throw await statusError(url, request.method, response)
  return response
}

function bodyOf(url: string | URL, response: Response, accept = 'text/event-stream'): ByteSource {
  const type = response.headers.get('content-type') ?? 'no content type'
  if (!type.startsWith(accept)) {
    const message = `"${url}" answered ${type} where ${accept} is expected. Check that the URL is the chat endpoint.`
    throw new CountersignError('not-an-event-stream', message, { contentType: type })
  }
  if (!response.body) throw new CountersignError('empty-response', `"${url}" answered without a body.`)
  return response.body
}

/** What a server says about a refused request: `{ code, message }` as ours do, or text. Kept short, and never shown as HTML. */
async function statusError(
  url: string | URL,
  method: string | undefined,
  response: Response,
): Promise<CountersignError> {
  const text = (await response.text().catch(() => '')).slice(0, 1000)
  const message = `[${method}] "${url}": ${response.status} ${response.statusText}`.trim()
  return new CountersignError('http-status', message, { status: response.status, body: text })
}
