import type { OAuthClientProvider } from '@modelcontextprotocol/sdk/client/auth.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { FetchLike } from '@modelcontextprotocol/sdk/shared/transport.js'
import { ErrorCode, type JSONRPCMessage, type RequestId } from '@modelcontextprotocol/sdk/types.js'

/** A server with the streamable HTTP transport. */
export interface HttpSource {
  readonly url: string | URL
  readonly headers?: Readonly<Record<string, string>> | undefined
  /** The SDK's OAuth provider. */
  readonly authProvider?: OAuthClientProvider | undefined
  readonly fetch?: FetchLike | undefined
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

  constructor({ url, headers, authProvider, fetch = globalThis.fetch }: HttpSource) {
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

  async #watch(fetch: FetchLike, url: string | URL, init: RequestInit = {}): Promise<Response> {
    const token = new Headers(init.headers).get('last-event-id')
    const resumed = token === null ? undefined : this.#resumable.get(token)
    if (resumed !== undefined) return this.#watchResume(resumed, () => fetch(url, init))
    const response = await fetch(url, init)
    const id = typeof init.body === 'string' ? requestId(JSON.parse(init.body)) : undefined
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream')
    if (id === undefined || !isStream || response.body === null) return response
    return new Response(
      watched(response.body, () => this.#ended(id)),
      response,
    )
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

  /** Responds in place of the server, with the error of a closed connection. */
  #lose(id: RequestId): void {
    if (!this.#waiting.has(id)) return
    const error = { code: ErrorCode.ConnectionClosed, message: 'The stream ended without an answer.' }
    this.onmessage?.({ jsonrpc: '2.0', id, error })
  }
}

function requestId(message: JSONRPCMessage): RequestId | undefined {
  return 'id' in message && 'method' in message ? message.id : undefined
}

/** The same bytes; calls `ended` once all have been read, or the stream broke. */
function watched(body: ReadableStream<Uint8Array>, ended: () => void): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await reader.read()
        if (!done) return controller.enqueue(value)
        controller.close()
      } catch (error) {
        controller.error(error)
      }
      ended()
    },
    cancel: (reason) => reader.cancel(reason),
  })
}
