import type { Owner } from '@countersign/server'
import { compareAndSwap, type RowStore, type StoredRow, type Swap } from '@countersign/server/ledger-kit'
import { type Ask, digest, isOutOfMemory, itemsOf, type Redis, textOf } from './redis.js'

/** KEYS: rows. Returns the time, and the fields of each row. */
const READ = `
local time = redis.call('TIME')
local rows = {}
for i, key in ipairs(KEYS) do rows[i] = redis.call('HMGET', key, 'version', 'kept', 'record', 'state', 'words') end
return { time[1], time[2], rows }`

/**
 * KEYS: row, its list. ARGV: the version to replace, or nothing; the new one, or nothing to remove the row; the latest time to write; the
 * prefix of the owner's keys; the row's entry in its list; the name of that list, or nothing; record, state, words; until when it is kept,
 * and that as a lifetime; its tag's key, or nothing; the limits of its list's rows and bytes, and how many rows are kept; then other rows
 * and their required versions, or nothing if they must not exist, alternating.
 *
 * An entry of a list is the row's name and the size of its record, so that both limits are computed from the list itself: a stored sum
 * would be wrong once a row has expired. After the latest time, the sender has reported a failure, so the write must not happen.
 *
 * A change of a row begins with a deletion, unless its words are long: without memory, Redis refuses a script only before its first write,
 * and never a deletion. So answers fit, and their outcomes.
 */
const SWAP = `
local time = redis.call('TIME')
if time[1] * 1000 + time[2] / 1000 > tonumber(ARGV[3]) then return redis.error_reply('ERR too late') end
local function rowOf(entry) return ARGV[4] .. 'row:' .. string.match(entry, '^[^:]+') end
for i = 16, #ARGV, 2 do
  if (redis.call('HGET', rowOf(ARGV[i]), 'version') or '') ~= ARGV[i + 1] then return 'changed' end
end
local old = redis.call('HMGET', KEYS[1], 'version', 'list')
if (old[1] or '') ~= ARGV[1] then return 'changed' end
local list = old[2] or ''
if list ~= '' and (list ~= ARGV[6] or ARGV[2] == '') then
  redis.call('LREM', ARGV[4] .. 'list:' .. list, 1, ARGV[5])
end
if ARGV[2] == '' then
  redis.call('DEL', KEYS[1])
  return 'swapped'
end
local function isFull(entries)
  local size = tonumber(string.match(ARGV[5], '%d+$'))
  for _, entry in ipairs(entries) do size = size + string.match(entry, '%d+$') end
  return #entries >= tonumber(ARGV[13]) or size > tonumber(ARGV[14])
end
if ARGV[13] ~= '' and isFull(redis.call('LRANGE', KEYS[2], 0, -1)) then
  for _, entry in ipairs(redis.call('LRANGE', KEYS[2], 0, -1)) do
    if redis.call('EXISTS', rowOf(entry)) == 0 then redis.call('LREM', KEYS[2], 1, entry) end
  end
  if isFull(redis.call('LRANGE', KEYS[2], 0, -1)) then return 'full' end
end
if old[1] and #ARGV[9] <= 32768 then redis.call('HDEL', KEYS[1], 'words') end
redis.call('HSET', KEYS[1], 'state', ARGV[8], 'version', ARGV[2], 'kept', ARGV[10], 'list', ARGV[6])
if not old[1] then redis.call('HSET', KEYS[1], 'record', ARGV[7]) end
if ARGV[9] ~= '' then redis.call('HSET', KEYS[1], 'words', ARGV[9]) end
redis.call('PEXPIRE', KEYS[1], ARGV[11])
-- Another row may have taken the tag since, and it lives as long as its row.
if ARGV[12] ~= '' and (not old[1] or redis.call('GET', ARGV[12]) == ARGV[5]) then
  redis.call('SET', ARGV[12], ARGV[5], 'PX', ARGV[11])
end
if ARGV[6] == '' then return 'swapped' end
if list ~= ARGV[6] then
  -- A row that has expired is still in its list.
  if not old[1] then redis.call('LREM', KEYS[2], 1, ARGV[5]) end
  redis.call('RPUSH', KEYS[2], ARGV[5])
end
if redis.call('PTTL', KEYS[2]) < tonumber(ARGV[11]) then redis.call('PEXPIRE', KEYS[2], ARGV[11]) end
while ARGV[15] ~= '' and redis.call('LLEN', KEYS[2]) > tonumber(ARGV[15]) do
  redis.call('DEL', rowOf(redis.call('LPOP', KEYS[2])))
end
return 'swapped'`

/** KEYS: a list. ARGV: the prefix of the owner's keys. Expired rows are removed from the list. */
const LIST = `
local rows = {}
for _, entry in ipairs(redis.call('LRANGE', KEYS[1], 0, -1)) do
  local row = redis.call('HMGET', ARGV[1] .. 'row:' .. string.match(entry, '^[^:]+'), 'version', 'kept', 'record', 'state')
  if row[1] then rows[#rows + 1] = row else redis.call('LREM', KEYS[1], 1, entry) end
end
local time = redis.call('TIME')
return { time[1], time[2], rows }`

/** KEYS: tags. ARGV: the prefix of the owner's keys. */
const LATEST = `
local rows = {}
for _, key in ipairs(KEYS) do
  local entry = redis.call('GET', key)
  local row = entry and redis.call('HMGET', ARGV[1] .. 'row:' .. string.match(entry, '^[^:]+'), 'version', 'kept', 'record', 'state')
  if row and row[1] then rows[#rows + 1] = row end
end
return rows`

const APPEND = `return redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[1], '*', 'entry', ARGV[2])`
const PAGE = `return redis.call('XRANGE', KEYS[1], ARGV[1], '+', 'COUNT', 256)`

/** How many tags one script looks up: a script blocks all other clients of Redis. */
const TAGS_AT_ONCE = 500

/** A ledger's rows in Redis: each is a hash that expires when it need not be kept any more. The log has about `maxLogLines` lines. */
export function redisRows(redis: Redis, id: string, maxLogLines: number): RowStore {
  const { prefix, timeOf } = redis
  // All keys of an owner are in one slot of a cluster, so that a script can use several.
  const baseOf = (owner: Owner) => `${prefix}{${digest(owner)}}:`
  const log = `${prefix}audit`

  async function get(ask: Ask, owner: Owner, keys: readonly string[]) {
    const names = keys.map((key) => `${baseOf(owner)}row:${digest(key)}`)
    const [seconds, micros, rows] = itemsOf(await ask(READ, names))
    return {
      rows: itemsOf(rows).map(storedRow),
      now: timeOf(seconds, micros),
      clock: Number(seconds) * 1000 + Math.floor(Number(micros) / 1000),
    }
  }

  async function swap(ask: Ask, { owner, key, was, row, others, room, newest, now, notAfter }: Swap) {
    const base = baseOf(owner)
    const name = digest(key)
    const list = row?.list === undefined ? '' : digest(row.list)
    const values = [
      ...[was ?? '', row?.version ?? '', String(notAfter), base],
      ...[`${name}:${Buffer.byteLength(row?.record ?? '')}`, list],
      ...[row?.record ?? '', row?.state ?? '', row?.words ?? ''],
      ...(row === null ? ['', ''] : [String(row.keptUntil), lifetime(row.keptUntil - now)]),
      row?.tag === undefined ? '' : `${base}tag:${digest(row.tag)}`,
      ...[room?.rows, room?.bytes, newest].map((limit) => String(limit ?? '')),
      ...others.flatMap((other) => [digest(other.key), other.version ?? '']),
    ]
    try {
      const outcome = await ask(SWAP, [`${base}row:${name}`, `${base}list:${list}`], values)
      return outcome === 'swapped' || outcome === 'full' ? outcome : 'changed'
    } catch (error) {
      if (isOutOfMemory(error)) return 'full'
      throw error
    }
  }

  return {
    id,
    durable: true,
    update: compareAndSwap((work) =>
      redis.within((ask, left) =>
        work({ get: (owner, keys) => get(ask, owner, keys), swap: (one) => swap(ask, one) }, left),
      ),
    ),
    list: (owner, list) =>
      redis.within(async (ask) => {
        const base = baseOf(owner)
        const reply = await ask(LIST, [`${base}list:${digest(list)}`], [base])
        const [seconds, micros, rows] = itemsOf(reply)
        return { rows: rowsOf(rows), now: timeOf(seconds, micros) }
      }),
    latest: (owner, tags) =>
      redis.within(async (ask) => {
        const base = baseOf(owner)
        const rows: StoredRow[] = []
        for (let from = 0; from < tags.length; from += TAGS_AT_ONCE) {
          const keys = tags.slice(from, from + TAGS_AT_ONCE).map((tag) => `${base}tag:${digest(tag)}`)
          rows.push(...rowsOf(await ask(LATEST, keys, [base])))
        }
        return rows
      }),
    append: (line) =>
      redis.within(async (ask) => {
        await ask(APPEND, [log], [String(maxLogLines), line])
      }),
    async *lines() {
      for (let from = '-'; ; ) {
        const start = from
        const entries = itemsOf(await redis.within((ask) => ask(PAGE, [log], [start])))
        for (const entry of entries) {
          const [name, fields] = itemsOf(entry)
          yield String(itemsOf(fields)[1])
          from = `(${String(name)}`
        }
        if (entries.length === 0) return
      }
    },
  }
}

function rowsOf(reply: unknown): StoredRow[] {
  return itemsOf(reply).flatMap((row) => storedRow(row) ?? [])
}

function storedRow(reply: unknown): StoredRow | undefined {
  const [version, kept, record, state, words] = itemsOf(reply)
  if (textOf(version) === undefined) return undefined
  return {
    ...{ version: String(version), keptUntil: Number(kept) },
    ...{ record: String(record), state: String(state), words: textOf(words) },
  }
}

/** A lifetime for Redis, in milliseconds. */
function lifetime(ms: number): string {
  return String(Math.max(1, Math.min(Math.ceil(ms), Number.MAX_SAFE_INTEGER)))
}
