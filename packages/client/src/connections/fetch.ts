import {
  type ByteSource,
  CountersignError,
  type RunAgentInput,
  readJsonLines,
  readServerSentEvents,
} from '@countersign/core'
import type { Connection, ConnectOptions } from './connection.js'

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

/**
 * Posts `RunAgentInput` to `url` and reads the answer as server-sent events: the transport of AG-UI 1.0.
 * Fails with `http-status`, `not-an-event-stream`, `connection-failed`, `malformed-event`, `event-too-large` or `truncated-stream`.
 */
export function fetchServerSentEvents(url: string | URL, options: FetchOptions = {}): Connection {
  return {
    async *connect(input, connect) {
      const body = await post(url, input, 'text/event-stream', options, connect)
      const { maxEventBytes } = options
      for await (const batch of readServerSentEvents(body, { maxEventBytes, signal: connect.signal })) {
        yield batch.map((event) => event.data)
      }
    },
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
  const own = typeof options.headers === 'function' ? await options.headers() : options.headers
  const request: RequestInit = {
    method: 'POST',
    headers: { ...own, ...headers, 'content-type': 'application/json', accept },
    body: JSON.stringify(input),
    signal,
    ...(options.credentials && { credentials: options.credentials }),
  }
  const response = await (options.fetch ?? globalThis.fetch)(url, request).catch((cause: unknown) => {
    throw new CountersignError(
      'connection-failed',
      `[POST] "${url}": the server could not be reached. Try again.`,
      {},
      cause,
    )
  })
  if (!response.ok) throw await statusError(url, response)
  const type = response.headers.get('content-type') ?? 'no content type'
  if (!type.startsWith(accept)) {
    const message = `[POST] "${url}" answered ${type} where ${accept} is expected. Check that the URL is the chat endpoint.`
    throw new CountersignError('not-an-event-stream', message, { contentType: type })
  }
  if (!response.body) throw new CountersignError('empty-response', `[POST] "${url}" answered without a body.`)
  return response.body
}

/** What a server says about a refused request: `{ code, message }` as ours do, or text. Kept short, and never shown as HTML. */
async function statusError(url: string | URL, response: Response): Promise<CountersignError> {
  const text = (await response.text().catch(() => '')).slice(0, 1000)
  const message = `[POST] "${url}": ${response.status} ${response.statusText}`.trim()
  return new CountersignError('http-status', message, { status: response.status, body: text })
}
