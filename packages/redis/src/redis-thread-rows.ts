import type { HeaderRow, ItemRow, ThreadRows } from '@countersign/server/ledger-kit'
import { type Ask, isOutOfMemory, itemsOf, type Redis, textOf } from './redis.js'

// A thread has four keys: a hash with its header, a hash with the metadata of each item, a hash with the text of each item, and a sorted set
// of the items by the version at which they were last written. An owner has one sorted set of threads, by their last activity. All of these
// are in one slot of a cluster. Another sorted set, for all owners, has the threads that are held, by the end of the lease.

/** The fields of a header in a reply: stamp, version, last activity, end of the lease, body. */
const FIELDS = `'stamp', 'version', 'updated', 'lease', 'body'`

/** KEYS: header, metas. ARGV: names of items. */
const LOOK = `
local time = redis.call('TIME')
local metas = {}
for i, name in ipairs(ARGV) do metas[i] = redis.call('HGET', KEYS[2], name) end
return { time[1], time[2], redis.call('HMGET', KEYS[1], ${FIELDS}), metas }`

/** KEYS: header, metas, bodies, versions. ARGV: the version after which items are read. */
const READ = `
local time = redis.call('TIME')
local items = {}
for i, name in ipairs(redis.call('ZRANGEBYSCORE', KEYS[4], '(' .. ARGV[1], '+inf')) do
  items[i] = { name, redis.call('HGET', KEYS[2], name), redis.call('HGET', KEYS[3], name) }
end
return { time[1], time[2], redis.call('HMGET', KEYS[1], ${FIELDS}), items }`

/**
 * KEYS: header, metas, bodies, versions, the owner's threads. ARGV: the stamp to replace, or nothing; the thread's name in the owner's
 * threads; the new header's fields, with an empty stamp to remove the thread; then name, version, meta and body of each item.
 */
const WRITE = `
if (redis.call('HGET', KEYS[1], 'stamp') or '') ~= ARGV[1] then return 'changed' end
if ARGV[3] == '' then
  redis.call('DEL', KEYS[1], KEYS[2], KEYS[3], KEYS[4])
  redis.call('ZREM', KEYS[5], ARGV[2])
  return 'written'
end
redis.call('HSET', KEYS[1], 'stamp', ARGV[3], 'version', ARGV[4], 'updated', ARGV[5], 'lease', ARGV[6], 'body', ARGV[7])
if ARGV[5] ~= '' then redis.call('ZADD', KEYS[5], ARGV[5], ARGV[2]) end
for i = 8, #ARGV, 4 do
  redis.call('ZADD', KEYS[4], ARGV[i + 1], ARGV[i])
  redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 2])
  redis.call('HSET', KEYS[3], ARGV[i], ARGV[i + 3])
end
return 'written'`

const COUNT = `return redis.call('ZCARD', KEYS[1])`

/**
 * KEYS: the owner's threads. ARGV: the prefix of the owner's keys; the number of threads; last activity and name of the thread after which
 * they come, or nothing. Names are compared byte by byte: Lua would use the collation of the server's locale.
 */
const LIST = `
local function isBefore(one, other)
  for i = 1, #one do
    local a, b = string.byte(one, i), string.byte(other, i)
    if a ~= b then return a < b end
  end
  return false
end
local rank = 0
if ARGV[3] ~= '' then rank = redis.call('ZCOUNT', KEYS[1], '(' .. ARGV[3], '+inf') end
local rows = {}
while #rows < tonumber(ARGV[2]) do
  local page = redis.call('ZREVRANGE', KEYS[1], rank, rank + 99, 'WITHSCORES')
  if #page == 0 then break end
  for i = 1, #page, 2 do
    local isBehind = ARGV[3] == '' or tonumber(page[i + 1]) < tonumber(ARGV[3]) or isBefore(page[i], ARGV[4])
    if isBehind and #rows < tonumber(ARGV[2]) then
      rows[#rows + 1] = { page[i], redis.call('HMGET', ARGV[1] .. page[i], ${FIELDS}) }
    end
  end
  rank = rank + 100
end
local time = redis.call('TIME')
return { time[1], time[2], rows }`

const NOW = `return redis.call('TIME')`

/** KEYS: the threads that are held. ARGV: end of the lease, the thread. */
const HELD = `return redis.call('ZADD', KEYS[1], ARGV[1], ARGV[2])`

/** KEYS: the threads that are held. ARGV: the time; the number of threads. */
const LAPSED = `return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'WITHSCORES', 'LIMIT', 0, ARGV[2])`

/** KEYS: the threads that are held. ARGV: the thread; the end of its lease as read; the correct one, or nothing if it is not held. */
const CORRECT = `
if tonumber(redis.call('ZSCORE', KEYS[1], ARGV[1]) or -1) ~= tonumber(ARGV[2]) then return 0 end
if ARGV[3] == '' then return redis.call('ZREM', KEYS[1], ARGV[1]) end
return redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1])`

/** The rows of threads in Redis. Each method is one script, except those for leases, which also maintain the set of all owners. */
export function redisThreadRows({ prefix, timeOf }: Redis, ask: Ask): ThreadRows {
  const held = `${prefix}threads:held`
  const baseOf = (owner: string) => `${prefix}threads:{${owner}}:`
  const keysOf = (owner: string, thread: string) =>
    ['', ':meta', ':body', ':changed'].map((end) => `${baseOf(owner)}${thread}${end}`)
  const listOf = (owner: string) => `${baseOf(owner)}list`

  async function headerAt(owner: string, thread: string): Promise<HeaderRow | undefined> {
    const [, , header] = itemsOf(await ask(LOOK, keysOf(owner, thread).slice(0, 2)))
    return headerOf(thread, header)
  }

  return {
    async look(owner, thread, names) {
      const reply = await ask(LOOK, keysOf(owner, thread).slice(0, 2), names)
      const [seconds, micros, header, metas] = itemsOf(reply)
      const items = itemsOf(metas).flatMap((meta, index) => {
        const text = textOf(meta)
        return text === undefined ? [] : { name: names[index] ?? '', ...metaOf(text) }
      })
      return { header: headerOf(thread, header), items, now: timeOf(seconds, micros) }
    },

    async read(owner, thread, after) {
      const reply = await ask(READ, keysOf(owner, thread), [String(after)])
      const [seconds, micros, fields, rows] = itemsOf(reply)
      const header = headerOf(thread, fields)
      if (header === undefined) return undefined
      const items = itemsOf(rows).map((row) => {
        const [name, meta, body] = itemsOf(row)
        return { name: String(name), body: String(body), ...metaOf(String(meta)) }
      })
      items.sort((one, other) => one.place - other.place)
      return { header, items, now: timeOf(seconds, micros) }
    },

    async write({ owner, thread, before, header, items }) {
      const member = `${owner}:${thread}`
      const leases = { before: before?.leaseUntil ?? null, after: header?.leaseUntil ?? null }
      const fields = header === null ? [''] : fieldsOf(header)
      const rows = items.flatMap((item) => [item.name, String(item.version), metaText(item), item.body])
      const values = [before?.stamp ?? '', thread, ...fields, ...rows]
      try {
        // First, so that a held thread is always found; a thread that is not held leaves the set when it is checked.
        if (leases.after !== null && leases.after !== leases.before)
          await ask(HELD, [held], [String(leases.after), member])
        const outcome = await ask(WRITE, [...keysOf(owner, thread), listOf(owner)], values)
        if (outcome !== 'written') return 'changed'
      } catch (error) {
        if (isOutOfMemory(error)) return 'full'
        throw error
      }
      if (leases.before !== null && leases.after === null)
        await ask(CORRECT, [held], [member, String(leases.before), '']).catch(() => {})
      return 'written'
    },

    count: async (owner) => Number(await ask(COUNT, [listOf(owner)])),

    async list(owner, limit, after) {
      const from = after === undefined ? ['', ''] : [String(after.updatedAt), after.thread]
      const reply = await ask(LIST, [listOf(owner)], [baseOf(owner), String(limit), ...from])
      const [seconds, micros, rows] = itemsOf(reply)
      const headers = itemsOf(rows).flatMap((row) => {
        const [thread, header] = itemsOf(row)
        return headerOf(String(thread), header) ?? []
      })
      return { headers, now: timeOf(seconds, micros) }
    },

    async lapsed(limit) {
      const [seconds, micros] = itemsOf(await ask(NOW, [held]))
      const now = timeOf(seconds, micros)
      for (;;) {
        const entries = itemsOf(await ask(LAPSED, [held], [String(now), String(limit)])).map(String)
        const headers: HeaderRow[] = []
        let isRight = true
        for (let index = 0; index < entries.length; index += 2) {
          const [member = '', end = ''] = entries.slice(index, index + 2)
          const [owner = '', thread = ''] = member.split(':')
          const header = await headerAt(owner, thread)
          const leaseUntil = header?.leaseUntil ?? null
          if (header !== undefined && leaseUntil === Number(end)) headers.push(header)
          else {
            isRight = false
            await ask(CORRECT, [held], [member, end, String(leaseUntil ?? '')])
          }
        }
        if (isRight) return headers
      }
    },
  }
}

function fieldsOf({ stamp, version, updatedAt, leaseUntil, body }: HeaderRow): string[] {
  return [stamp, String(version), String(updatedAt ?? ''), String(leaseUntil ?? ''), body]
}

function headerOf(thread: string, reply: unknown): HeaderRow | undefined {
  const [stamp, version, updated, lease, body] = itemsOf(reply).map(textOf)
  if (stamp === undefined) return undefined
  const numberOf = (text: string | undefined) => (text === undefined || text === '' ? null : Number(text))
  return {
    ...{ thread, stamp, version: Number(version), body: body ?? '' },
    ...{ updatedAt: numberOf(updated), leaseUntil: numberOf(lease) },
  }
}

function metaText({ version, place, size, meta }: ItemRow): string {
  return `${version} ${place} ${size} ${meta}`
}

function metaOf(text: string): Pick<ItemRow, 'version' | 'place' | 'size' | 'meta'> {
  const [version = '', place = '', size = ''] = text.split(' ', 3)
  const meta = text.slice(version.length + place.length + size.length + 3)
  return { version: Number(version), place: Number(place), size: Number(size), meta }
}
