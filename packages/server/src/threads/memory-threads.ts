import { checkOptions, method, wholeNumber } from '../encoding/check-options.js'
import { randomId } from '../encoding/ids.js'
import { createThreads, threadLimitRules } from './create-threads.js'
import type { HeaderRow, ItemRow, ThreadBackend, ThreadRows } from './thread-rows.js'
import type { ThreadLimits, ThreadStore } from './thread-store.js'

export interface MemoryThreadsOptions extends ThreadLimits {
  /** Threads of all owners together. Default 100,000. */
  readonly maxThreads?: number | undefined
  /** Approximate bytes of all threads together. Default 256 MiB. */
  readonly maxBytes?: number | undefined
  /** Approximate bytes of all threads of one owner. Default a quarter of `maxBytes`. */
  readonly maxBytesPerOwner?: number | undefined
  /** Milliseconds since the epoch. Default `Date.now`. */
  readonly now?: (() => number) | undefined
}

type Limits = Readonly<Record<'maxThreads' | 'maxBytes' | 'maxBytesPerOwner', number>>

interface MemoryThread {
  readonly header: HeaderRow
  readonly items: Map<string, ItemRow>
  readonly bytes: number
}

interface MemoryOwner {
  readonly threads: Set<string>
  bytes: number
}

/**
 * Threads in this process's memory, for development and tests: they are lost on restart. A full store refuses additions with the limit
 * `store` and drops nothing.
 *
 * @throws CountersignError `invalid-option` if a limit is not a positive integer.
 */
export function memoryThreads(options: MemoryThreadsOptions = {}): ThreadStore {
  checkOptions('memoryThreads', options, {
    ...threadLimitRules,
    maxThreads: wholeNumber,
    maxBytes: wholeNumber,
    maxBytesPerOwner: wholeNumber,
    now: method,
  })
  const { maxThreads = 100_000, maxBytes = 256 * 1024 * 1024 } = options
  const limits = {
    maxThreads,
    maxBytes,
    maxBytesPerOwner: options.maxBytesPerOwner ?? Math.ceil(maxBytes / 4),
  }
  const rows = memoryRows(limits, options.now ?? Date.now)
  let id: string | undefined
  const backend: ThreadBackend = {
    // Generated on first use: some worker runtimes have no random values while modules are evaluated.
    get id() {
      id ??= randomId('memory_')
      return id
    },
    durable: false,
    within: (work) => work(rows),
  }
  return createThreads(backend, options)
}

// Each function is atomic because it awaits nothing.
function memoryRows({ maxThreads, maxBytes, maxBytesPerOwner }: Limits, now: () => number): ThreadRows {
  const threads = new Map<string, MemoryThread>()
  const owners = new Map<string, MemoryOwner>()
  let bytes = 0

  const headersOf = (owner: string) =>
    [...(owners.get(owner)?.threads ?? [])].flatMap((thread) => {
      const header = threads.get(thread)?.header
      return header === undefined || header.updatedAt === null ? [] : header
    })

  function put(owner: string, thread: string, next: MemoryThread | undefined): void {
    const more = (next?.bytes ?? 0) - (threads.get(thread)?.bytes ?? 0)
    const own = owners.get(owner) ?? { threads: new Set(), bytes: 0 }
    own.bytes += more
    bytes += more
    if (next === undefined) {
      threads.delete(thread)
      own.threads.delete(thread)
    } else {
      threads.set(thread, next)
      own.threads.add(thread)
    }
    if (own.threads.size === 0) owners.delete(owner)
    else owners.set(owner, own)
  }

  function hasRoom(owner: string, isNew: boolean, more: number): boolean {
    if (isNew && threads.size >= maxThreads) return false
    const own = owners.get(owner)?.bytes ?? 0
    return more <= 0 || (bytes + more <= maxBytes && own + more <= maxBytesPerOwner)
  }

  return {
    async look(_, thread, names) {
      const found = threads.get(thread)
      return {
        header: found?.header,
        items: names.flatMap((name) => found?.items.get(name) ?? []),
        now: now(),
      }
    },
    async read(_, thread, after) {
      const found = threads.get(thread)
      if (found === undefined) return undefined
      const items = [...found.items.values()].filter(({ version }) => version > after)
      return { header: found.header, items, now: now() }
    },
    async write({ owner, thread, before, header, items }) {
      const found = threads.get(thread)
      if (found?.header.stamp !== before?.stamp) return 'changed'
      if (header === null) {
        put(owner, thread, undefined)
        return 'written'
      }
      const spare = (header.spare ?? 0) - (found?.header.spare ?? 0)
      const kept = found?.items ?? new Map<string, ItemRow>()
      const more = items.reduce((sum, one) => sum + one.size - (kept.get(one.name)?.size ?? 0), spare)
      // A lease can be renewed even if the store is full.
      if ((found === undefined || more > 0) && !hasRoom(owner, found === undefined, more)) return 'full'
      for (const item of items) kept.set(item.name, item)
      const size = header.body.length - (found?.header.body.length ?? 0)
      put(owner, thread, { header, items: kept, bytes: (found?.bytes ?? 0) + more + size })
      return 'written'
    },
    count: async (owner) => headersOf(owner).length,
    async list(owner, limit, after) {
      const rest = headersOf(owner).filter((header) => after === undefined || compare(header, after) > 0)
      return { headers: rest.sort(compare).slice(0, limit), now: now() }
    },
    async lapsed(limit) {
      const time = now()
      const ended = [...threads.values()].flatMap(({ header }) => {
        const { leaseUntil } = header
        return leaseUntil !== null && leaseUntil <= time ? { header, leaseUntil } : []
      })
      ended.sort((one, other) => one.leaseUntil - other.leaseUntil)
      return ended.slice(0, limit).map(({ header }) => header)
    },
  }
}

/** The order of `list`: the most recently appended to first. */
function compare(one: Position, other: Position): number {
  const byTime = (other.updatedAt ?? 0) - (one.updatedAt ?? 0)
  if (byTime !== 0) return byTime
  return one.thread < other.thread ? 1 : -1
}

type Position = Pick<HeaderRow, 'updatedAt' | 'thread'>
