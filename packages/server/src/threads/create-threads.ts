import { CountersignError } from '@countersign/core'
import { sha256 } from '../encoding/bytes.js'
import { checkKnown, type Rules, wholeNumber } from '../encoding/check-options.js'
import { randomId } from '../encoding/ids.js'
import { positive } from '../ledger/create-ledger.js'
import type { Owner } from '../ledger/ledger.js'
import {
  appendToThread,
  type Decision,
  type FoundThread,
  holdThread,
  releaseThread,
  summaryOf,
  type ThreadHeader,
} from './thread-header.js'
import { itemsOf, messageOf, namesOf, sizesOf, usageOf } from './thread-items.js'
import type {
  HeaderRow,
  ItemRow,
  ListPosition,
  ThreadBackend,
  ThreadLook,
  ThreadRows,
} from './thread-rows.js'
import type { ThreadFull, ThreadKey, ThreadLimits, ThreadStore } from './thread-store.js'

const MAX_TITLE = 1024
const MAX_PAGE = 1000

/** What each limit of a thread store must be. */
export const threadLimitRules: Rules<ThreadLimits> = {
  maxMessages: wholeNumber,
  maxMessageBytes: wholeNumber,
  maxThreadBytes: wholeNumber,
  maxThreadsPerOwner: wholeNumber,
}

/**
 * A thread store on any kind of rows. All rules of {@link ThreadStore} are implemented here, once for all backends; a backend reads rows, and
 * writes them in one atomic step that requires the thread to be as it was read.
 *
 * @throws CountersignError `invalid-option` if a limit is not a positive integer.
 */
export function createThreads(backend: ThreadBackend, options: ThreadLimits = {}): ThreadStore {
  checkKnown('createThreads', options, threadLimitRules)
  const limits = {
    maxMessages: options.maxMessages ?? 10_000,
    maxMessageBytes: options.maxMessageBytes ?? 16 * 1024 * 1024,
    maxThreadBytes: options.maxThreadBytes ?? 64 * 1024 * 1024,
    maxThreadsPerOwner: options.maxThreadsPerOwner ?? 10_000,
  }

  async function find(
    key: ThreadKey,
    owner: string,
    look: ThreadLook,
    rows: ThreadRows,
  ): Promise<FoundThread> {
    const header = look.header && headerOf(look.header)
    const exists = header !== undefined && header.version > 0
    const { maxThreadsPerOwner } = limits
    const mayBegin = exists || (await rows.count(owner)) < maxThreadsPerOwner
    // The cursors of `list` have whole milliseconds.
    return { key, header, now: Math.floor(look.now), mayBegin, maxThreadsPerOwner }
  }

  return {
    get id() {
      return backend.id
    },
    durable: backend.durable,
    maxMessageBytes: limits.maxMessageBytes,

    async load(key, after = 0) {
      const { owner, thread } = await placeOf(key)
      if (!Number.isSafeInteger(after) || after < 0) throw invalid('after must be a version: 0, 1, 2, ...')
      const found = await backend.within((rows) => rows.read(owner, thread, after))
      if (found === undefined || found.header.version === 0) return undefined
      const header = headerOf(found.header)
      return {
        ...summaryOf(header, found.now),
        head: header.head,
        messages: found.items.flatMap((item) => messageOf(item) ?? []),
        usage: found.items.flatMap((item) => usageOf(item) ?? []),
      }
    },

    async append(key, change) {
      const place = await placeOf(key)
      if (change.title !== undefined) checkTitle(change.title)
      const names = await namesOf(change)
      const { version, run, messages, head, usage, title, cursor, release } = change
      const digest = await sha256(
        JSON.stringify([version, run?.runId, run?.holder, messages, head, usage, title, cursor, release]),
      )
      return update(backend, place, [...names.keys()], async (look, rows) => {
        const found = await find(key, place.owner, look, rows)
        return {
          ...appendToThread(found, change, digest, sizesOf(names, look), limits),
          items: itemsOf(names, look, found.header?.places ?? 0, version + 1),
          whenFull: STORE_FULL,
        }
      })
    },

    async hold(key, run, leaseMs, { renew = false } = {}) {
      const place = await placeOf(key)
      positive('leaseMs', leaseMs)
      return update(backend, place, [], async (look, rows) => {
        const found = await find(key, place.owner, look, rows)
        return { ...holdThread(found, run, leaseMs, renew), whenFull: STORE_FULL }
      })
    },

    async release(key, run) {
      const place = await placeOf(key)
      await update(backend, place, [], async ({ header }) => releaseThread(header && headerOf(header), run))
    },

    async list(owner, { limit, cursor }) {
      checkLimit(limit)
      const after = cursor === undefined ? undefined : positionOf(cursor)
      const name = await ownerName(owner)
      const { headers, now } = await backend.within((rows) => rows.list(name, limit + 1, after))
      const page = headers.slice(0, limit)
      const last = headers.length > limit ? page.at(-1) : undefined
      return {
        threads: page.map((row) => summaryOf(headerOf(row), now)),
        cursor: last && `${last.updatedAt}.${last.thread}`,
      }
    },

    async rename(key, title) {
      const place = await placeOf(key)
      checkTitle(title)
      return update(backend, place, [], async ({ header }) =>
        header === undefined || header.version === 0
          ? { result: false }
          : { result: true, header: { ...headerOf(header), title } },
      )
    },

    async remove(key) {
      const place = await placeOf(key)
      return update(backend, place, [], async ({ header }) =>
        header === undefined || header.version === 0 ? { result: false } : { result: true, header: null },
      )
    },

    async abandoned(limit) {
      checkLimit(limit)
      const rows = await backend.within((one) => one.lapsed(limit))
      return rows
        .map(headerOf)
        .flatMap(({ owner, threadId, run }) =>
          run === undefined ? [] : { owner, threadId, runId: run.runId },
        )
    },
  }
}

const STORE_FULL: ThreadFull = { status: 'full', limit: 'store' }

interface Place {
  readonly owner: string
  readonly thread: string
}

type Decided<Result> = Decision<Result> & {
  readonly items?: readonly ItemRow[]
  /** The result if the store has no room. */
  readonly whenFull?: Result
}

/**
 * Reads, decides and writes until nobody else has written in between. If the reply to a write was lost, the thread's current state shows
 * whether it was made; a second lost reply is an error.
 */
function update<Result>(
  backend: ThreadBackend,
  place: Place,
  names: readonly string[],
  decide: (look: ThreadLook, rows: ThreadRows) => Promise<Decided<Result>>,
): Promise<Result> {
  return backend.within(async (rows) => {
    let doubtful: { readonly stamp: string | undefined; readonly result: Result } | undefined
    for (;;) {
      const look = await rows.look(place.owner, place.thread, names)
      if (doubtful !== undefined && look.header?.stamp === doubtful.stamp) return doubtful.result
      const { result, header, items = [], whenFull } = await decide(look, rows)
      if (header === undefined) return result
      const next = header && rowOf(place.thread, header)
      const write = { ...place, before: look.header, header: next, items: next === null ? [] : items }
      const outcome = await rows.write(write).catch((error: unknown) => {
        if (doubtful !== undefined) throw error
        doubtful = { stamp: next?.stamp, result }
      })
      if (outcome === 'written') return result
      if (outcome === 'full' && whenFull !== undefined) return whenFull
      if (outcome === 'full')
        throw new CountersignError('ledger-unavailable', 'The thread store has no room.')
    }
  })
}

function rowOf(thread: string, header: ThreadHeader): HeaderRow {
  const { version, run, updatedAt } = header
  return {
    ...{ thread, stamp: randomId(''), version },
    updatedAt: version === 0 ? null : updatedAt,
    leaseUntil: run?.until ?? null,
    spare: run?.spareBytes ?? 0,
    body: JSON.stringify(header),
  }
}

function headerOf({ body }: HeaderRow): ThreadHeader {
  return JSON.parse(body)
}

async function placeOf({ owner, threadId }: ThreadKey): Promise<Place> {
  if (typeof threadId !== 'string') throw invalid(`threadId must be text, not ${typeof threadId}.`)
  return { owner: await ownerName(owner), thread: await sha256(JSON.stringify([owner, threadId])) }
}

async function ownerName(owner: Owner): Promise<string> {
  if (owner !== null && typeof owner !== 'string')
    throw invalid(`owner must be text or null, not ${typeof owner}.`)
  return sha256(JSON.stringify([owner]))
}

/** @throws CountersignError `invalid-argument` */
function positionOf(cursor: string): ListPosition {
  const [, updatedAt, thread] = /^(\d{1,16})\.([\w-]{43})$/.exec(cursor) ?? []
  if (updatedAt === undefined || thread === undefined) throw invalid('cursor must come from an earlier page.')
  return { updatedAt: Number(updatedAt), thread }
}

function checkLimit(limit: number): void {
  if (Number.isInteger(limit) && limit > 0 && limit <= MAX_PAGE) return
  throw invalid(`limit must be an integer from 1 to ${MAX_PAGE}, not ${limit}.`)
}

function checkTitle(title: string): void {
  if (typeof title === 'string' && title.length <= MAX_TITLE) return
  throw invalid(`title must be text of at most ${MAX_TITLE} characters.`)
}

function invalid(message: string): CountersignError {
  return new CountersignError('invalid-argument', `Thread store: ${message}`)
}
