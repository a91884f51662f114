import { setTimeout as pause } from 'node:timers/promises'
import type { ApprovalRecord, ApprovalRef, ApprovalState, LedgerEntry, Owner } from '@countersign/server'
import { joinState, keptUntil, type RowStep, splitState, stateAt } from '@countersign/server/ledger-kit'
import { type Ask, digest, itemsOf, type Redis, textOf } from './redis.js'

/** A row as it was read, and what belongs to that moment. */
export interface RowNow extends LedgerEntry {
  /** The state as Redis holds it, without the words of its answer. A change must still find it there. */
  readonly stored: string
  /** Milliseconds since the epoch. */
  readonly now: number
  /** The same by the clock of Redis, also where the ledger was given another. */
  readonly clock: number
  /** Of the owner's grants; see {@link READ}. */
  readonly revision: number
}

/** How long a revision that nobody uses is kept. What was forgotten differs from what was read, and so refuses. */
const REVISION_MS = 35 * 24 * 60 * 60 * 1000

/** All keys of an owner lie in one slot of a cluster, so that one script may use several. */
export function ownerKey(prefix: string, owner: Owner, ...rest: readonly string[]): string {
  return [`${prefix}{${digest(owner)}}`, ...rest].join(':')
}

/** The key of what every revocation of an owner changes. */
export function revisionKey(prefix: string, owner: Owner): string {
  return ownerKey(prefix, owner, 'revision')
}

/** A number that nobody has used before, for a revision. */
function newRevision(): string {
  const [high = 0, low = 0] = globalThis.crypto.getRandomValues(new Uint32Array(2))
  return String((high % 0x100000) * 0x100000000 + low + 1)
}

/** KEYS: row, revision. ARGV: the revision to begin with, or nothing where none is asked for; its lifetime. */
const READ = `
local row = redis.call('HMGET', KEYS[1], 'record', 'state', 'words')
local time = redis.call('TIME')
local revision = redis.call('GET', KEYS[2])
if row[1] and ARGV[1] ~= '' then
  if not revision then revision = ARGV[1] end
  redis.call('SET', KEYS[2], revision, 'PX', ARGV[2])
end
return { row[1], row[2], row[3], revision, time[1], time[2] }`

/** Questions that may be open in one thread: each request that has calls reads all of them. */
const MAX_OPEN = 1024

/**
 * KEYS: row, the thread's open rows, the call's row. ARGV: record, state, lifetime, the row's name, how many may be open, what the keys of
 * rows begin with, the size of its arguments, how much of that may be open. Answers a record that is there, or `full`. An entry of the list
 * is the row's name and that size, so that both limits are counted from the list itself: a sum kept beside it would be wrong as soon as a row
 * has expired.
 */
const ISSUE = `
local known = redis.call('HGET', KEYS[1], 'record')
if known then return known end
local function isFull(open)
  local size = tonumber(ARGV[7])
  for _, entry in ipairs(open) do size = size + string.match(entry, '%d+$') end
  return #open >= tonumber(ARGV[5]) or size > tonumber(ARGV[8])
end
local open = redis.call('LRANGE', KEYS[2], 0, -1)
if isFull(open) then
  for _, entry in ipairs(open) do
    if redis.call('EXISTS', ARGV[6] .. string.match(entry, '^[^:]+')) == 0 then redis.call('LREM', KEYS[2], 1, entry) end
  end
  if isFull(redis.call('LRANGE', KEYS[2], 0, -1)) then return 'full' end
end
redis.call('HSET', KEYS[1], 'record', ARGV[1], 'state', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
redis.call('RPUSH', KEYS[2], ARGV[4] .. ':' .. ARGV[7])
if redis.call('PTTL', KEYS[2]) < tonumber(ARGV[3]) then redis.call('PEXPIRE', KEYS[2], ARGV[3]) end
redis.call('SET', KEYS[3], ARGV[4], 'PX', ARGV[3])
return false`

/**
 * KEYS: row, the thread's open rows. ARGV: the state to replace, the new one, lifetime, the row's entry in the list, how its being open
 * changes, the latest time to write, the words of the answer or nothing. After that time the sender has reported a failure, so the write must
 * not happen.
 */
const REPLACE = `
local time = redis.call('TIME')
if time[1] * 1000 + time[2] / 1000 > tonumber(ARGV[6]) then return redis.error_reply('ERR too late') end
if redis.call('HGET', KEYS[1], 'state') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'state', ARGV[2])
if ARGV[7] == '' then redis.call('HDEL', KEYS[1], 'words') else redis.call('HSET', KEYS[1], 'words', ARGV[7]) end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
if ARGV[5] == 'closes' then redis.call('LREM', KEYS[2], 1, ARGV[4]) end
if ARGV[5] == 'reopens' then redis.call('RPUSH', KEYS[2], ARGV[4]) end
if ARGV[5] ~= 'closes' and redis.call('PTTL', KEYS[2]) < tonumber(ARGV[3]) then redis.call('PEXPIRE', KEYS[2], ARGV[3]) end
return 1`

/** KEYS: the thread's open rows. ARGV: what their keys begin with. Those that have expired leave the list. */
const UNSETTLED = `
local rows = {}
for _, entry in ipairs(redis.call('LRANGE', KEYS[1], 0, -1)) do
  local row = redis.call('HMGET', ARGV[1] .. string.match(entry, '^[^:]+'), 'record', 'state')
  if row[1] then rows[#rows + 1] = row else redis.call('LREM', KEYS[1], 1, entry) end
end
local time = redis.call('TIME')
return { time[1], time[2], rows }`

/** KEYS: of calls. ARGV: what the keys of rows begin with. */
const SETTLED = `
local rows = {}
for _, key in ipairs(KEYS) do
  local name = redis.call('GET', key)
  local row = name and redis.call('HMGET', ARGV[1] .. name, 'record', 'state')
  if row and row[1] then rows[#rows + 1] = row end
end
return rows`

/** Calls that one script looks up: Redis answers nobody else meanwhile. */
const CALLS_AT_ONCE = 500

/** Milliseconds between two attempts to take a claim back. */
const AGAIN_MS = 500

/** A claim that was sent, but may not have reached Redis. */
interface Sent {
  readonly holder: string
  /** What it replaces. */
  readonly before: ApprovalState
  /** By the clock of Redis: from then on it does nothing any more. */
  readonly latest: number
  /** When its lease ends, as `performance.now` says it. */
  readonly end: number
}

export interface ChangeOptions {
  readonly wantsRevision?: boolean | undefined
  /** Whose claim it is that is made. Where it cannot be said whether it was made, it is taken back. */
  readonly claimer?: string | undefined
}

/**
 * The approvals of a Redis ledger: each a hash of its record and its state, which expires with it. `maxOpenBytes` is for the arguments of
 * what is open in one thread.
 */
export function redisApprovals(redis: Redis, maxOpenBytes: number) {
  const { prefix, timeOf } = redis
  const nameOf = ({ threadId, approvalId }: ApprovalRef) => digest(threadId, approvalId)
  const sizeOf = (record: ApprovalRecord) => String(Buffer.byteLength(record.arguments))
  const rowKey = (ref: ApprovalRef) => ownerKey(prefix, ref.owner, 'row', nameOf(ref))
  const openKey = (owner: Owner, threadId: string) => ownerKey(prefix, owner, 'open', digest(threadId))
  const callKey = (owner: Owner, threadId: string, toolCallId: string) =>
    ownerKey(prefix, owner, 'call', digest(threadId, toolCallId))

  async function read(ask: Ask, ref: ApprovalRef, wantsRevision: boolean): Promise<RowNow | undefined> {
    const keys = [rowKey(ref), revisionKey(prefix, ref.owner)]
    const begin = wantsRevision ? newRevision() : ''
    const [record, state, words, revision, ...time] = itemsOf(
      await ask(READ, keys, [begin, String(REVISION_MS)]),
    )
    const stored = textOf(state)
    if (stored === undefined) return undefined
    return {
      record: JSON.parse(String(record)),
      state: joinState(stored, textOf(words)),
      stored,
      now: timeOf(time[0], time[1]),
      clock: Number(time[0]) * 1000 + Math.floor(Number(time[1]) / 1000),
      revision: Number(revision ?? 0),
    }
  }

  async function replace(ask: Ask, row: RowNow, state: ApprovalState, latest: number): Promise<boolean> {
    const { record } = row
    const keys = [rowKey(record), openKey(record.owner, record.threadId)]
    const life = lifetime({ record, state }, row.now)
    const change = state.phase === 'done' ? 'closes' : row.state.phase === 'done' ? 'reopens' : 'none'
    const entry = `${nameOf(record)}:${sizeOf(record)}`
    const texts = splitState(state)
    const values = [row.stored, texts.state, life, entry, change, String(latest), texts.words ?? '']
    return (await ask(REPLACE, keys, values)) === 1
  }

  /**
   * One step of one row: read, decided here, and written only where nobody else wrote in between. Where the connection broke while it
   * was written, what is there then tells whether it was. Where the time is over before that is known, nothing is written any more, and a
   * claim that was is taken back.
   */
  async function change<Result>(
    ref: ApprovalRef,
    unknown: Result,
    step: (row: RowNow) => RowStep<Result>,
    { wantsRevision = false, claimer }: ChangeOptions = {},
  ): Promise<Result> {
    const sent: Sent[] = []
    const work = async (ask: Ask, left: () => number) => {
      let doubtful: { readonly stored: string; readonly result: Result } | undefined
      for (;;) {
        const row = await read(ask, ref, wantsRevision)
        if (row === undefined) return unknown
        if (doubtful !== undefined && row.stored === doubtful.stored) return doubtful.result
        const { result, state } = step(row)
        if (state === undefined) return result
        const latest = row.clock + Math.floor(left())
        if (claimer !== undefined && state.phase === 'claimed') {
          const end = performance.now() + state.leaseUntil - row.now
          sent.push({ holder: claimer, before: row.state, latest, end })
        }
        try {
          if (await replace(ask, row, state, latest)) return result
        } catch (error) {
          if (doubtful !== undefined) throw error
          doubtful = { stored: splitState(state).state, result }
        }
      }
    }
    try {
      return await redis.within(work)
    } catch (error) {
      const last = sent.at(-1)
      if (last !== undefined) void takeBack(ref, last)
      throw error
    }
  }

  /**
   * Takes back a claim whose sender was told that it failed. Retries until the lease ends, since Redis may be unreachable. Does not keep
   * the process alive.
   */
  async function takeBack(ref: ApprovalRef, sent: Sent): Promise<void> {
    while (performance.now() < sent.end) {
      const isOver = await redis.within((ask, left) => tryToTakeBack(ask, left, ref, sent)).catch(() => false)
      if (isOver) return
      await pause(AGAIN_MS, undefined, { ref: false })
    }
  }

  /** Whether nothing is left to take back. After the lease others may have been told that it was interrupted, and so it stays. */
  async function tryToTakeBack(
    ask: Ask,
    left: () => number,
    ref: ApprovalRef,
    { holder, before, latest }: Sent,
  ): Promise<boolean> {
    const row = await read(ask, ref, false)
    if (row === undefined) return true
    const { state, clock, now } = row
    // not there, but it may still be on its way
    if (state.phase !== 'claimed' || state.holder !== holder) return clock > latest
    const lease = state.leaseUntil - now
    // a millisecond before it ends, for what a clock rounds
    return lease <= 1 || replace(ask, row, before, clock + Math.floor(Math.min(left(), lease - 1)))
  }

  return {
    change,
    lookup: (ref: ApprovalRef): Promise<LedgerEntry | undefined> =>
      redis.within(async (ask) => {
        const row = await read(ask, ref, false)
        return row && { record: row.record, state: stateAt(row.state, row.now) }
      }),
    /** The record that is there already, `full` where too much is open in its thread, or nothing where this one is there now. */
    insert: (record: ApprovalRecord, now: number): Promise<ApprovalRecord | 'full' | undefined> =>
      redis.within(async (ask) => {
        const entry: LedgerEntry = { record, state: { phase: 'issued' } }
        const { owner, threadId, toolCallId } = record
        const keys = [rowKey(record), openKey(owner, threadId), callKey(owner, threadId, toolCallId)]
        const values = [
          JSON.stringify(record),
          JSON.stringify(entry.state),
          lifetime(entry, now),
          nameOf(record),
          String(MAX_OPEN),
          ownerKey(prefix, record.owner, 'row', ''),
          sizeOf(record),
          String(maxOpenBytes),
        ]
        const known = textOf(await ask(ISSUE, keys, values))
        return known === undefined || known === 'full' ? known : JSON.parse(known)
      }),
    settled: (owner: Owner, threadId: string, toolCallIds: readonly string[]): Promise<LedgerEntry[]> =>
      redis.within(async (ask) => {
        const entries: LedgerEntry[] = []
        for (let from = 0; from < toolCallIds.length; from += CALLS_AT_ONCE) {
          const ids = toolCallIds.slice(from, from + CALLS_AT_ONCE)
          const keys = ids.map((id) => callKey(owner, threadId, id))
          for (const row of itemsOf(await ask(SETTLED, keys, [ownerKey(prefix, owner, 'row', '')]))) {
            const [record, state] = itemsOf(row)
            entries.push({ record: JSON.parse(String(record)), state: JSON.parse(String(state)) })
          }
        }
        return entries.filter(({ state }) => state.phase === 'done')
      }),
    unsettled: (owner: Owner, threadId: string): Promise<LedgerEntry[]> =>
      redis.within(async (ask) => {
        const keys = [openKey(owner, threadId)]
        const [seconds, micros, rows] = itemsOf(
          await ask(UNSETTLED, keys, [ownerKey(prefix, owner, 'row', '')]),
        )
        const now = timeOf(seconds, micros)
        return itemsOf(rows).map((row) => {
          const [record, state] = itemsOf(row)
          return {
            record: JSON.parse(String(record)),
            state: stateAt(JSON.parse(String(state)), now),
          }
        })
      }),
  }
}

/** In milliseconds, as Redis takes it. */
function lifetime(entry: LedgerEntry, now: number): string {
  return String(Math.max(1, Math.min(keptUntil(entry) - now, Number.MAX_SAFE_INTEGER)))
}
