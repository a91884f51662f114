import type { OAuthClientProvider } from '@modelcontextprotocol/sdk/client/auth.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { FetchLike } from '@modelcontextprotocol/sdk/shared/transport.js'
import { ErrorCode, type JSONRPCMessage, type RequestId } from '@modelcontextprotocol/sdk/types.js'
import { checkPositive } from './check-positive.js'

/** A server with the streamable HTTP transport. */
export interface HttpSource {
  readonly url: string | URL
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** The SDK's OAuth provider. */
  readonly authProvider?: OAuthClientProvider | undefined
  readonly fetch?: FetchLike | undefined
  /** Of one response, or of one event of a stream: no more is read, and the request fails. Default 16 MiB. */
  readonly maxResponseBytes?: number | undefined
}

type SendOptions = NonNullable<Parameters<StreamableHTTPClientTransport['send']>[1]>

/** How often the SDK tries to resume a broken stream. */
const RESUMES = 2

/**
 * The SDK's transport, which also reports when a response will not come. The SDK itself leaves a request open if its stream ends without
 * a response: a server that died during a call would be detected only by the timeout.
 */
export class HttpTransport extends StreamableHTTPClientTransport {
  readonly #waiting = new Set<RequestId>()
  /** The request of each stream, by the stream's last event id: the SDK resumes such a stream. */
  readonly #resumable = new Map<string, RequestId>()
  readonly #failedResumes = new Map<RequestId, number>()

  /** @throws CountersignError `invalid-option` */
  constructor({ url, headers, authProvider, fetch = globalThis.fetch, maxResponseBytes: most }: HttpSource) {
    checkPositive({ maxResponseBytes: most }, 'bytes')
    super(new URL(url), {
      fetch: (to, init) => this.#watch(fetch, most ?? 2 ** 24, to, init),
      ...(headers && { requestInit: { headers: { ...headers } } }),
      ...(authProvider && { authProvider }),
      reconnectionOptions: {
        maxRetries: RESUMES,
        initialReconnectionDelay: 1000,
        maxReconnectionDelay: 30_000,
        reconnectionDelayGrowFactor: 1.5,
      },
    })
  }

  override async start(): Promise<void> {
    const { onmessage } = this
    this.onmessage = (message) => {
      if ('id' in message && !('method' in message) && message.id !== undefined) this.#settle(message.id)
      onmessage?.(message)
    }
    await super.start()
  }

  override async send(message: JSONRPCMessage, options: SendOptions = {}): Promise<void> {
    const id = requestId(message)
    if (id === undefined) return super.send(message, options)
    this.#waiting.add(id)
    try {
      await super.send(message, {
        ...options,
        onresumptiontoken: (token) => {
          this.#resumable.set(token, id)
          options.onresumptiontoken?.(token)
        },
      })
    } catch (error) {
      this.#settle(id)
      throw error
    }
  }

  #settle(id: RequestId): void {
    this.#waiting.delete(id)
    this.#failedResumes.delete(id)
    for (const [token, request] of this.#resumable) if (request === id) this.#resumable.delete(token)
  }

  async #watch(fetch: FetchLike, most: number, url: string | URL, init: RequestInit = {}): Promise<Response> {
    const token = new Headers(init.headers).get('last-event-id')
    const resumed = token === null ? undefined : this.#resumable.get(token)
    const send = async () => fetch(url, init)
    const response = await (resumed === undefined ? send() : this.#watchResume(resumed, send))
    const id = resumed ?? (typeof init.body === 'string' ? requestId(JSON.parse(init.body)) : undefined)
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true
    if (response.body === null) return response
    const checked = limited(most, isStream, (why) => this.#lose(id, why, ErrorCode.InternalError))
    const ended = () => isStream && id !== undefined && this.#ended(id)
    return new Response(watched(response.body, checked, ended), response)
  }

  async #watchResume(id: RequestId, fetch: () => Promise<Response>): Promise<Response> {
    try {
      const response = await fetch()
      if (response.ok) this.#failedResumes.delete(id)
      else this.#resumeFailed(id, response.status === 405)
      return response
    } catch (error) {
      this.#resumeFailed(id, false)
      throw error
    }
  }

  #resumeFailed(id: RequestId, forGood: boolean): void {
    const failed = (this.#failedResumes.get(id) ?? 0) + 1
    this.#failedResumes.set(id, failed)
    if (forGood || failed >= RESUMES) this.#lose(id)
  }

  /** Delayed, because the SDK reads the rest of the stream first, without further I/O. */
  #ended(id: RequestId): void {
    setTimeout(() => {
      if (![...this.#resumable.values()].includes(id)) this.#lose(id)
    }, 0)
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

/** Throws at the piece that is too much: of a stream, since the last empty line, which ends an event. */
function limited(most: number, isStream: boolean, tooLarge: (why: string) => void) {
  let size = 0
  let last = ''
  return (piece: Uint8Array) => {
    const text = isStream ? last + Buffer.from(piece).toString('latin1') : ''
    last = text.slice(-1)
    size = /\n[\n\r]|\r\r/.test(text) ? 0 : size + piece.length
    if (size <= most) return piece
    const why = `its response has more than ${most} bytes`
    tooLarge(why)
    throw new Error(why)
  }
}

/** The same bytes, until `checked` throws; calls `ended` once all have been read, or the stream broke. */
function watched(body: ReadableStream<Uint8Array>, checked: ReturnType<typeof limited>, ended: () => void) {
  const reader = body.getReader()
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read()
        if (!done) return controller.enqueue(checked(value))
        controller.close()
      } catch (error) {
        controller.error(error)
        reader.cancel().catch(() => {})
      }
      ended()
    },
    cancel: (reason) => reader.cancel(reason),
  })
}
