import { CountersignError, isCountersignError, isRecord } from '@countersign/core'
import { callBack, called } from './call-back.js'
import { type FetchOptions, fetchKinds, fetchResponse } from './connections/fetch.js'
import { checkKinds, invalidOption } from './kinds.js'

/** One of the user's conversations. */
export interface ListedThread {
  readonly threadId: string
  /** What it was renamed to, or else the beginning of its first message. */
  readonly title: string | undefined
  /** Milliseconds since the epoch. */
  readonly createdAt: number
  /** When something was last stored in it, in milliseconds since the epoch. */
  readonly updatedAt: number
  /** Whether a reply streams. */
  readonly isRunning: boolean
}

export interface ThreadListSnapshot {
  /** The most recently active first. An unchanged entry is the same object. */
  readonly threads: readonly ListedThread[]
  /** Whether `loadMore()` has more to load. */
  readonly hasMore: boolean
  readonly isLoading: boolean
  /** Why the last request failed; undefined once one succeeds. `threads` are those of before. */
  readonly error: CountersignError | undefined
}

/** The list of a user's conversations. No method rejects: the snapshot has the error. */
export interface ThreadList {
  /** Calls `listener` after every change. Loads the list while there are listeners: at the first, and when the user returns to the page. */
  readonly subscribe: (listener: () => void) => () => void
  /** The same object until something changes. */
  readonly getSnapshot: () => ThreadListSnapshot
  /** Loads the list again, as many as are shown (at most 1,000). Call it after a change, such as a new conversation. */
  readonly load: () => Promise<void>
  /** Loads one page more. */
  readonly loadMore: () => Promise<void>
  /** Sets a title of at most 1,024 characters. Resolves with whether the server has done it. */
  readonly rename: (threadId: string, title: string) => Promise<boolean>
  /** Removes a conversation for good. Resolves with whether the server has done it. */
  readonly remove: (threadId: string) => Promise<boolean>
}

export interface ThreadListOptions extends FetchOptions {
  /** How many a page has, at most 1,000. Default 50. */
  pageSize?: number | undefined
}

/** As many as the server lists at once. */
const MAX_LIMIT = 1000

const returns = ['focus', 'online']

/**
 * The list of the user's conversations on a server that keeps them, for a menu beside the chat. `url` is the route of `threadResponse`, the
 * same as that of `serverThreads`.
 *
 * Throws `invalid-option` for a `pageSize` that is not a whole number from 1 to 1,000.
 *
 * @example
 * const list = threadList('/api/chat')
 * const { threads } = useSyncExternalStore(list.subscribe, list.getSnapshot)
 */
export function threadList(url: string | URL, options: ThreadListOptions = {}): ThreadList {
  const { pageSize = 50 } = options
  if (typeof process !== 'undefined' && process.env.NODE_ENV !== 'production')
    checkKinds('threadList', options, { ...fetchKinds, pageSize: 'number above 0' })
  if (!Number.isInteger(pageSize) || pageSize < 1 || pageSize > MAX_LIMIT)
    throw invalidOption('threadList', 'pageSize', `a whole number from 1 to ${MAX_LIMIT}`)
  const listeners = new Set<() => void>()
  let snapshot: ThreadListSnapshot = { threads: [], hasMore: false, isLoading: false, error: undefined }
  let cursor: string | undefined
  let loads = 0

  const become = (change: Partial<ThreadListSnapshot>) => {
    snapshot = { ...snapshot, ...change }
    for (const listener of listeners) callBack(listener)
  }
  const send = (method: string, query: Record<string, string>, body?: unknown) =>
    fetchResponse(url, options, {
      method,
      query,
      headers: {
        accept: 'application/json',
        ...(body !== undefined && { 'content-type': 'application/json' }),
      },
      body,
    })

  /** Loads one page behind `before`. If a later load has begun meanwhile, only that one counts. */
  async function read(query: Record<string, string>, before: readonly ListedThread[]): Promise<void> {
    const turn = ++loads
    become({ isLoading: true })
    const page = await send('GET', query)
      .then((response) => response.json())
      .then(readPage)
      .catch((error: unknown) => ({ error: failureOf(error) }))
    if (turn !== loads) return
    if ('error' in page) return become({ isLoading: false, error: page.error })
    cursor = page.cursor
    const threads = keepSame(snapshot.threads, [...before, ...page.threads])
    become({ threads, hasMore: cursor !== undefined, isLoading: false, error: undefined })
  }
  const load = () =>
    read({ limit: String(Math.min(Math.max(pageSize, snapshot.threads.length), MAX_LIMIT)) }, [])
  const change = async (method: string, threadId: string, body?: unknown) => {
    try {
      await send(method, { threadId }, body)
    } catch (error) {
      become({ error: failureOf(error) })
      return false
    }
    await load()
    return true
  }
  const follow = (type: 'addEventListener' | 'removeEventListener') => {
    for (const name of returns) globalThis[type]?.(name, load)
  }

  return {
    subscribe(listener) {
      called(listener)
      if (listeners.size === 0) {
        follow('addEventListener')
        void load()
      }
      listeners.add(listener)
      return () => {
        if (listeners.delete(listener) && listeners.size === 0) follow('removeEventListener')
      }
    },
    getSnapshot: () => snapshot,
    load,
    loadMore: async () => {
      if (cursor !== undefined && !snapshot.isLoading)
        await read({ limit: String(pageSize), cursor }, snapshot.threads)
    },
    rename: (threadId, title) => change('PATCH', threadId, { title }),
    remove: (threadId) => change('DELETE', threadId),
  }
}

function readPage(body: unknown) {
  if (!isRecord(body) || !Array.isArray(body.threads) || !body.threads.every(isListed))
    throw new CountersignError(
      'empty-response',
      'The response is not a list of conversations. Check that the route handles GET with `threadResponse`.',
    )
  const threads: readonly ListedThread[] = body.threads
  return { threads, cursor: typeof body.cursor === 'string' ? body.cursor : undefined }
}

function isListed(value: unknown): value is ListedThread {
  return isRecord(value) && typeof value.threadId === 'string' && typeof value.updatedAt === 'number'
}

/** Keeps the object of an unchanged entry. One that has moved to another page meanwhile is listed once. */
function keepSame(before: readonly ListedThread[], now: readonly ListedThread[]): ListedThread[] {
  const known = new Map(before.map((entry) => [JSON.stringify(entry), entry]))
  const entries = new Map(now.map((entry) => [entry.threadId, known.get(JSON.stringify(entry)) ?? entry]))
  return [...entries.values()]
}

function failureOf(error: unknown): CountersignError {
  if (isCountersignError(error)) return error
  return new CountersignError('empty-response', 'The response could not be read as JSON.', {}, error)
}
