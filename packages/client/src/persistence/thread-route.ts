import { CountersignError, isCountersignError, isRecord, type Message } from '@countersign/core'
import { type FetchOptions, fetchResponse } from '../connections/fetch.js'
import type { InitialThread, KeptSession } from './persistence.js'

/** The response of `threadResponse`, as far as it is used. */
export interface LoadedThread extends Omit<InitialThread, 'messages'> {
  readonly messages: readonly Message[]
  readonly parents?: readonly (string | null)[] | undefined
}

type Headers = KeptSession['headers']

/** The server's route for conversations. Its methods reject as {@link fetchResponse} does. */
export class ThreadRoute {
  readonly #url: string
  readonly #options: FetchOptions

  constructor(url: string, options: FetchOptions) {
    this.#url = url
    this.#options = options
  }

  /** `undefined`: the server has no such conversation. With `since`, only the messages of later versions. */
  async load(threadId: string, headers: Headers, since?: number): Promise<LoadedThread | undefined> {
    // Browsers report a 404 in the console.
    const query = { threadId, unknown: '204', ...(since !== undefined && { since: `${since}` }) }
    const asked = { method: 'GET', headers: { ...headers, accept: 'application/json' }, query }
    const response = await fetchResponse(this.#url, this.#options, asked).catch((error: unknown) => {
      if (!isResponse(error, 404, 'thread-unknown')) throw error
    })
    if (!response || response.status === 204) return undefined
    const loaded: unknown = await response.json().catch(() => undefined)
    if (isLoadedThread(loaded)) return loaded
    const message = `The response of "${this.#url}" is not a conversation. Check that the route handles GET with \`threadResponse\`.`
    throw new CountersignError('persistence-unavailable', message)
  }

  /** Shows the version that this message belongs to. */
  async show(threadId: string, messageId: string, headers: Headers): Promise<void> {
    const query = { threadId, messageId }
    await fetchResponse(this.#url, this.#options, { method: 'PATCH', headers, query })
  }
}

function isLoadedThread(value: unknown): value is LoadedThread {
  return isRecord(value) && typeof value.version === 'number' && Array.isArray(value.messages)
}

/** Whether it is a response of the server's route for conversations, with that status and code. */
export function isResponse(error: unknown, status: number, code: string): boolean {
  return (
    isCountersignError(error) && error.data.status === status && `${error.data.body}`.includes(`"${code}"`)
  )
}
