import {
  type ByteSource,
  CountersignError,
  isRecord,
  omitUndefined,
  parseJson,
  type RunAgentInput,
  readJsonLines,
  readServerSentEvents,
} from '@countersign/core'
import { checkKinds, type Kinds } from '../kinds.js'
import type { Connection, ConnectOptions, RunCursor } from './connection.js'

/** Headers by name, or the platform's `Headers`. */
export type HeadersGiven = Readonly<Record<string, string>> | Headers

/** Where requests go. A function is called for each request. */
export type Endpoint = string | URL | (() => string | URL | Promise<string | URL>)

/** A request before it is sent, as `prepareRequest` gets it. */
export interface PreparedRequest {
  readonly url: string
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  /** Sent as JSON: for a run, its `RunAgentInput`. Absent if the method sends none. */
  readonly body?: unknown
}

/** Options of the connections over `fetch`. */
export interface FetchOptions {
  /** Headers of each request, or a function called for each (for a token that expires). */
  headers?: HeadersGiven | (() => HeadersGiven | Promise<HeadersGiven>) | undefined
  /** As in `RequestInit`. Default: the platform's, `same-origin`. */
  credentials?: RequestCredentials | undefined
  /** Replaces the global `fetch`. */
  fetch?: typeof globalThis.fetch | undefined
  /** Changes any member of a request before it is sent, and of the one that is repeated after a 401. Returns what it replaces. */
  prepareRequest?:
    | ((request: PreparedRequest) => Partial<PreparedRequest> | Promise<Partial<PreparedRequest>>)
    | undefined
  /**
   * Called after a 401, for example to renew a token; once for requests that get it at the same time. Each is then sent once more, with its
   * `headers` read again.
   */
  onUnauthorized?: (() => unknown) | undefined
  /** Called with each response before its body is read, which must be left to the connection. */
  onResponse?: ((response: Response) => void) | undefined
  /** Maximum length of one event, in UTF-16 units. Default 16 MiB. */
  maxEventBytes?: number | undefined
}

export interface ServerSentEventsOptions extends FetchOptions {
  /**
   * Whether the server stores its runs, so that one whose stream broke off can be rejoined: a GET of the same URL with
   * `threadId`, `runId` and the header `Last-Event-ID`, answered with the remaining events, or with 204. When the user stops the run, the
   * client sends a DELETE with the same query. Default: no.
   */
  rejoin?: boolean | undefined
}

/** What each option must be. */
export const fetchKinds: Kinds<FetchOptions> = {
  headers: 'object | function',
  credentials: 'omit | same-origin | include',
  fetch: 'function',
  prepareRequest: 'function',
  onUnauthorized: 'function',
  onResponse: 'function',
  maxEventBytes: 'number above 0',
}

/**
 * Posts `RunAgentInput` to `url` and reads the response as server-sent events: the transport of AG-UI 1.0. Fails with
 * `http-status`, `not-an-event-stream`, `connection-failed`, `malformed-event`, `event-too-large` or `truncated-stream`.
 */
export function fetchServerSentEvents(url: Endpoint, options: ServerSentEventsOptions = {}): Connection {
  if (typeof process !== 'undefined' && process.env.NODE_ENV !== 'production')
    checkKinds('fetchServerSentEvents', options, { ...fetchKinds, rejoin: 'boolean' })
  const connection: Connection = {
    async *connect(input, connect) {
      const response = await fetchResponse(url, options, post(input, eventStream, connect))
      yield* readEvents(responseBody(url, response, eventStream), options, connect)
    },
  }
  if (!options.rejoin) return connection
  const ask = (
    method: 'GET' | 'DELETE',
    { lastEventId, ...query }: RunCursor,
    { headers, signal }: Pick<ConnectOptions, 'headers'> & Partial<ConnectOptions>,
  ) => {
    const all = omitUndefined({ ...headers, accept: eventStream, 'last-event-id': lastEventId })
    // `keepalive` lets the stop go out even while the page is closing.
    return fetchResponse(url, options, { method, headers: all, query, signal, keepalive: !signal })
  }
  return {
    ...connection,
    async *rejoin(cursor, connect) {
      const response = await ask('GET', cursor, connect)
      if (response.status === 204) return
      const body = responseBody(url, response, eventStream)
      // A sign of life: the run exists, even if its stream ends before the next event.
      yield []
      yield* readEvents(body, options, connect)
    },
    // If this fails, the run ends after `goOnFor`, like any run without a reader.
    stop: (cursor, connect) => void ask('DELETE', cursor, connect).catch(() => {}),
  }
}

async function* readEvents(
  body: ByteSource,
  { maxEventBytes }: FetchOptions,
  { signal, onEventId }: ConnectOptions,
) {
  for await (const batch of readServerSentEvents(body, { maxEventBytes, signal, done: '[DONE]' })) {
    yield batch.map((event) => event.data)
    // If later events have no id, the last one seen counts.
    const id = batch.findLast((event) => event.id !== undefined)?.id
    if (id !== undefined) onEventId?.(id)
  }
}

/** The same with one JSON event per line (`application/x-ndjson`), for servers and proxies without event streams. */
export function fetchHttpStream(url: Endpoint, options: FetchOptions = {}): Connection {
  if (typeof process !== 'undefined' && process.env.NODE_ENV !== 'production')
    checkKinds('fetchHttpStream', options, fetchKinds)
  const { maxEventBytes } = options
  return {
    async *connect(input, connect) {
      const response = await fetchResponse(url, options, post(input, jsonLines, connect))
      yield* readJsonLines(responseBody(url, response, jsonLines), { maxEventBytes, signal: connect.signal })
    },
  }
}

export const eventStream = 'text/event-stream'
const jsonLines = 'application/x-ndjson'

interface Asked extends Omit<PreparedRequest, 'url'> {
  readonly signal?: AbortSignal | undefined
  readonly keepalive?: boolean
  /** Added to the URL. */
  readonly query?: Record<string, string> | [string, string][]
}

function post(input: RunAgentInput, accept: string, { headers, signal }: ConnectOptions): Asked {
  return {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json', accept },
    body: input,
    signal,
  }
}

/** Rejects with `connection-failed` if the server was not reached, with `http-status` if it refused. */
export async function fetchResponse(
  endpoint: Endpoint,
  options: FetchOptions,
  asked: Asked,
): Promise<Response> {
  const { onUnauthorized, onResponse } = options
  let sent = await send(endpoint, options, asked)
  if (sent.response.status === 401 && onUnauthorized) {
    void sent.response.body?.cancel().catch(() => {})
    await renewed(onUnauthorized)
    sent = await send(endpoint, options, asked)
  }
  const { response, place } = sent
  await onResponse?.(response)
  if (!response.ok) throw await statusError(place, response)
  return response
}

const renewals = new Map<() => unknown, Promise<unknown>>()

/** Requests that are refused while a token is renewed wait for that: a refresh token may count only once. */
function renewed(renew: () => unknown): Promise<unknown> {
  const renewal =
    renewals.get(renew) ??
    Promise.resolve()
      .then(renew)
      .finally(() => renewals.delete(renew))
  renewals.set(renew, renewal)
  return renewal
}

/** Sends it once; resolves whatever the status is. `place` names the request in errors. */
async function send(
  endpoint: Endpoint,
  { headers, credentials, fetch = globalThis.fetch, prepareRequest }: FetchOptions,
  { signal, query, ...asked }: Asked,
): Promise<{ response: Response; place: string }> {
  const own = typeof headers === 'function' ? await headers() : headers
  const target = `${typeof endpoint === 'function' ? await endpoint() : endpoint}`
  const planned: PreparedRequest = {
    ...asked,
    headers: { ...headersByName(own), ...asked.headers },
    url: query ? `${target}${target.includes('?') ? '&' : '?'}${new URLSearchParams(query)}` : target,
  }
  const { url, body, ...init } = { ...planned, ...(await prepareRequest?.(planned)) }
  const place = `[${init.method}] "${url}"`
  const response = await fetch(url, {
    ...init,
    headers: headersByName(init.headers),
    ...(body !== undefined && { body: JSON.stringify(body) }),
    ...(signal && { signal }),
    ...(credentials && { credentials }),
  }).catch((cause: unknown) => {
    const message = `${place}: the server could not be reached (see \`cause\`). Try again.`
    throw new CountersignError('connection-failed', message, {}, cause)
  })
  return { response, place }
}

/**
 * Headers by name in lower case: `fetch` joins the values of names that differ only in case, so the later one would not win. A `Headers`
 * object has no own properties, so spreading it would lose them.
 */
export function headersByName(headers: HeadersGiven = {}): Readonly<Record<string, string>> {
  const given = Symbol.iterator in headers ? headers : Object.entries(headers)
  return Object.fromEntries(Array.from(given, ([name, value]) => [name.toLowerCase(), value]))
}

/** The body of a response of that type. Throws `not-an-event-stream` or `empty-response`. */
export function responseBody(url: Endpoint, response: Response, accept: string): ByteSource {
  checkType(url, response, accept)
  const { body } = response
  if (!body) {
    const message = `"${urlOf(url, response)}" answered without a body that streams: in React Native give expo/fetch as the option \`fetch\`.`
    throw new CountersignError('empty-response', message)
  }
  return body
}

/** For error messages. */
export function urlOf(endpoint: Endpoint, { url }: Response): string | URL {
  return typeof endpoint === 'function' ? url : endpoint
}

export function checkType(url: Endpoint, response: Response, accept: string): void {
  const contentType = response.headers.get('content-type') ?? 'no content type'
  if (contentType.toLowerCase().startsWith(accept)) return
  const message = `"${urlOf(url, response)}" answered ${contentType} where ${accept} is expected. Check the URL and the sign-in.`
  throw new CountersignError('not-an-event-stream', message, { contentType })
}

/** The server's explanation of a refused request: `{ code, message }` from ours, or text. Truncated, and never shown as HTML. */
async function statusError(place: string, response: Response): Promise<CountersignError> {
  const { status, statusText } = response
  const body = (await beginning(response).catch(() => '')).slice(0, 1000)
  const said: unknown = parseJson(body)
  const reason = isRecord(said) && isRecord(said.error) ? `. ${said.error.message}` : ''
  return new CountersignError('http-status', `${place}: ${status} ${statusText}`.trim() + reason, {
    status,
    body,
  })
}

/** Reads only as much of a body as is reported, and for at most a second: it may never end. */
async function beginning(response: Response): Promise<string> {
  const reader = response.body?.getReader()
  // React Native cannot stream it.
  if (!reader) return response.text()
  const decoder = new TextDecoder()
  const leave = () => void reader.cancel().catch(() => {})
  const timer = setTimeout(leave, 1000)
  let text = ''
  try {
    for (let done = false; !done && text.length < 1000; ) {
      const read = await reader.read()
      text += decoder.decode(read.value, { stream: true })
      done = read.done
    }
  } finally {
    clearTimeout(timer)
    leave()
  }
  return text
}
