import { setImmediate as afterThis, setTimeout as pause } from 'node:timers/promises'
import type { OAuthClientProvider } from '@modelcontextprotocol/sdk/client/auth.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { FetchLike } from '@modelcontextprotocol/sdk/shared/transport.js'
import { ErrorCode, type JSONRPCMessage, type RequestId } from '@modelcontextprotocol/sdk/types.js'
import { checkPositive } from './check-positive.js'
import { isTooCostly } from './message-cost.js'
import { collected, watched } from './response-parts.js'
import { takeResponseRoom } from './response-room.js'
import { type Attempt, NO_ATTEMPT, nextAttempt } from './stream-attempts.js'

/** A server with the streamable HTTP transport. */
export interface HttpSource {
  readonly url: string | URL
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** The SDK's OAuth provider. */
  readonly authProvider?: OAuthClientProvider | undefined
  readonly fetch?: FetchLike | undefined
  /** Of one response, or of one event of a stream: no more is read, and the request fails. Default 4 MiB. */
  readonly maxResponseBytes?: number | undefined
}

type SendOptions = NonNullable<Parameters<StreamableHTTPClientTransport['send']>[1]>

/** How often the SDK tries to resume a broken stream. */
const RESUMES = 2

/** Enough for any result that an agent keeps (`limits.resultSize`), and little enough to be parsed in 512 MiB, whatever it is. */
const MAX_RESPONSE_BYTES = 4 * 1024 * 1024

/** Milliseconds that a server has to end a stream after its response. */
const TIME_TO_END = 5000

/** A server can ask thousands of things in one response, each of which takes a request of its own to answer. */
const REPLIES_AT_ONCE = 64

/** A stream that the SDK may open again. */
interface Stream {
  attempt: Attempt
}

/** A request without a response. */
interface Waiting extends Stream {
  readonly id: RequestId
  /** The last event id of its stream: the SDK resumes such a stream. */
  token?: string
  failedResumes: number
  /** Whether the SDK is about to resume its stream. */
  resumes: boolean
  /** Aborted when the response is not read further. */
  readonly over: AbortController
}

/**
 * The SDK's transport, which also reports when a response will not come. The SDK itself leaves a request open if its stream ends without
 * a response: a server that died during a call would be detected only by the timeout. And it resumes the streams of requests that are
 * over, and any stream as often as the server likes.
 */
export class HttpTransport extends StreamableHTTPClientTransport {
  readonly #waiting = new Map<RequestId, Waiting>()
  /** Last event ids of the streams of requests that are over. The SDK is about to resume these streams. */
  readonly #over = new Set<string>()
  /** The stream of messages that belong to no request. */
  readonly #common: Stream = { attempt: NO_ATTEMPT }
  readonly #server: string
  #replies = 0
  readonly #most: number

  /** @throws CountersignError `invalid-option` */
  constructor({ url, headers, authProvider, fetch = globalThis.fetch, maxResponseBytes: most }: HttpSource) {
    checkPositive({ maxResponseBytes: most }, 'bytes')
    super(new URL(url), {
      fetch: (to, init) => this.#watch(fetch, to, init),
      ...(headers && { requestInit: { headers: { ...headers } } }),
      ...(authProvider && { authProvider }),
      reconnectionOptions: {
        maxRetries: RESUMES,
        initialReconnectionDelay: 1000,
        maxReconnectionDelay: 30_000,
        reconnectionDelayGrowFactor: 1.5,
      },
    })
    this.#server = new URL(url).origin
    this.#most = most ?? MAX_RESPONSE_BYTES
  }

  override async start(): Promise<void> {
    const { onmessage } = this
    this.onmessage = (message) => {
      const answered = 'id' in message && !('method' in message) ? message.id : undefined
      if (isTooCostly(message))
        return this.#lose(answered, 'its response has too many values', ErrorCode.InternalError)
      if (answered !== undefined) this.#settle(answered, 'error' in message ? 'error' : 'result')
      onmessage?.(message)
    }
    await super.start()
  }

  override async send(message: JSONRPCMessage, options: SendOptions = {}): Promise<void> {
    if ('method' in message && message.method === 'notifications/cancelled')
      this.#settle(message.params?.['requestId'])
    if (!('method' in message)) return this.#reply(() => super.send(message, options))
    const id = requestId(message)
    if (id === undefined) return super.send(message, options)
    const waiting: Waiting = {
      id,
      attempt: NO_ATTEMPT,
      failedResumes: 0,
      resumes: false,
      over: new AbortController(),
    }
    this.#waiting.set(id, waiting)
    try {
      await super.send(message, {
        ...options,
        onresumptiontoken: (token) => {
          waiting.token = token
          options.onresumptiontoken?.(token)
        },
      })
    } catch (error) {
      this.#settle(id)
      throw error
    }
  }

  /** Answers the server, unless it has asked too much. */
  async #reply(send: () => Promise<void>): Promise<void> {
    if (this.#replies === REPLIES_AT_ONCE) return
    this.#replies++
    try {
      await send()
    } finally {
      this.#replies--
    }
  }

  /** The request is over. A server that leaves its stream open would have a connection, and what has arrived of an event, for ever. */
  #settle(id: unknown, response?: 'result' | 'error'): void {
    const waiting = this.#waiting.get(id as RequestId)
    if (waiting === undefined) return
    this.#waiting.delete(waiting.id)
    // The SDK resumes the stream of a request that was answered with an error.
    if (response !== 'result' && waiting.resumes && waiting.token !== undefined) this.#over.add(waiting.token)
    if (response === undefined) waiting.over.abort()
    else setTimeout(() => waiting.over.abort(), TIME_TO_END).unref()
  }

  async #watch(fetch: FetchLike, url: string | URL, init: RequestInit = {}): Promise<Response> {
    const headers = new Headers(init.headers)
    const token = headers.get('last-event-id')
    const resumed =
      token === null ? undefined : [...this.#waiting.values()].find((one) => one.token === token)
    const id = resumed?.id ?? (typeof init.body === 'string' ? requestId(JSON.parse(init.body)) : undefined)
    const over = id === undefined ? undefined : this.#waiting.get(id)?.over.signal
    const signal = over && init.signal ? AbortSignal.any([init.signal, over]) : init.signal
    const send = async () => fetch(url, { ...init, ...(signal && { signal }) })
    const opens = init.method === 'GET' && headers.get('accept') === 'text/event-stream'
    const response = await (opens ? this.#open(resumed, token, signal, send) : send())
    if (response.body === null) return response
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true
    const refuse = (why: string) => this.#lose(id, why, ErrorCode.InternalError)
    const parts = collected(this.#most, isStream, takeResponseRoom(this.#server), refuse)
    const ended = async () => id === undefined || this.#ended(id)
    return new Response(watched(response.body, isStream, parts, ended), response)
  }

  /** Opens the stream of a request again, or the common one. To the SDK, 405 means that there is none, and that it need not try again. */
  async #open(
    resumed: Waiting | undefined,
    token: string | null,
    signal: AbortSignal | null | undefined,
    fetch: () => Promise<Response>,
  ): Promise<Response> {
    const none = () => new Response(null, { status: 405 })
    if (token !== null && this.#over.delete(token)) return none()
    const isOver = () => signal?.aborted || (resumed && this.#waiting.get(resumed.id) !== resumed)
    if (resumed) resumed.resumes = false
    const stream = resumed ?? this.#common
    const now = performance.now()
    stream.attempt = nextAttempt(stream.attempt, now)
    if (stream.attempt.at > now) {
      await pause(stream.attempt.at - now, undefined, signal ? { signal } : {}).catch(() => {})
    }
    if (isOver()) return none()
    try {
      const response = await fetch()
      if (!resumed) return response
      if (response.ok) resumed.failedResumes = 0
      else this.#resumeFailed(resumed, response.status === 405)
      return response.ok || !isOver() ? response : none()
    } catch (error) {
      if (isOver()) return none()
      if (resumed) this.#resumeFailed(resumed, false)
      throw error
    }
  }

  #resumeFailed(waiting: Waiting, forGood: boolean): void {
    waiting.failedResumes++
    waiting.resumes = !forGood && waiting.failedResumes < RESUMES
    if (!waiting.resumes) this.#lose(waiting.id)
  }

  /** Whether to tell the SDK that the stream of a request has ended. Of one that is over it would resume the stream. */
  async #ended(id: RequestId): Promise<boolean> {
    // The SDK reads the rest of the stream first, without further I/O.
    await afterThis()
    const waiting = this.#waiting.get(id)
    if (waiting === undefined) return false
    waiting.resumes = waiting.token !== undefined
    if (!waiting.resumes) this.#lose(id)
    return true
  }

  /** Responds in place of the server, with an error. */
  #lose(id?: RequestId, message = 'The stream ended without an answer.', code = ErrorCode.ConnectionClosed) {
    if (id === undefined || !this.#waiting.has(id)) return
    this.onmessage?.({ jsonrpc: '2.0', id, error: { code, message } })
  }
}

function requestId(message: JSONRPCMessage): RequestId | undefined {
  return 'id' in message && 'method' in message ? message.id : undefined
}
