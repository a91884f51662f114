import { CountersignError } from '@countersign/core'
import { byteLength, sha256 } from '../encoding/bytes.js'
import type { Growth } from './thread-header.js'
import type { ItemRow, ThreadLook } from './thread-rows.js'
import type { RunUsage, StoredMessage, ThreadChange } from './thread-store.js'

type NewItem = Pick<ItemRow, 'size' | 'meta' | 'body'>

/** The items of a change by name. Of two messages with one id, the last counts. */
export type NewItems = ReadonlyMap<string, NewItem>

/** @throws CountersignError `invalid-argument` for a message that is not JSON text. */
export async function namesOf({ messages = [], usage }: ThreadChange): Promise<NewItems> {
  const items = new Map<string, NewItem>()
  for (const { id, parent, message } of messages) {
    checkMessage(id, message)
    // As JSON, so that any store can keep ids with an unpaired surrogate or a NUL.
    const meta = JSON.stringify({ id, parent })
    items.set(`m${await hashOf(id)}`, { size: byteLength(meta) + byteLength(message), meta, body: message })
  }
  if (usage !== undefined) {
    const { runId } = usage
    const [meta, body] = [JSON.stringify({ runId }), JSON.stringify(usage.usage)]
    items.set(`u${await hashOf(runId)}`, { size: byteLength(meta) + byteLength(body), meta, body })
  }
  return items
}

/** By how much the thread grows; a replaced item counts with the difference. */
export function sizesOf(items: NewItems, look: ThreadLook): Growth {
  const before = new Map(look.items.map(({ name, size }) => [name, size]))
  const growth = { messages: 0, items: 0, bytes: 0, largest: 0 }
  for (const [name, { size }] of items) {
    const isMessage = name.startsWith('m')
    if (!before.has(name)) growth.items++
    if (isMessage && !before.has(name)) growth.messages++
    if (isMessage) growth.largest = Math.max(growth.largest, size)
    growth.bytes += size - (before.get(name) ?? 0)
  }
  return growth
}

/** The items as rows. New items come after all others; replaced items keep their place. */
export function itemsOf(items: NewItems, look: ThreadLook, places: number, version: number): ItemRow[] {
  const before = new Map(look.items.map(({ name, place }) => [name, place]))
  let next = places
  return [...items].map(([name, item]) => ({ name, version, place: before.get(name) ?? next++, ...item }))
}

type StoredItem = Pick<ItemRow, 'name' | 'meta' | 'body'>

export function messageOf({ name, meta, body }: StoredItem): StoredMessage | undefined {
  if (!name.startsWith('m')) return undefined
  const { id, parent }: Omit<StoredMessage, 'message'> = JSON.parse(meta)
  return { id, parent, message: body }
}

export function usageOf({ name, meta, body }: StoredItem): RunUsage | undefined {
  if (!name.startsWith('u')) return undefined
  const { runId }: Pick<RunUsage, 'runId'> = JSON.parse(meta)
  return { runId, usage: JSON.parse(body) }
}

/** `JSON.stringify` escapes both, and stores differ in how they keep them unescaped. */
const NOT_IN_JSON = /[\0\p{Cs}]/u

function checkMessage(id: string, message: string): void {
  if (typeof id === 'string' && typeof message === 'string' && !NOT_IN_JSON.test(message)) return
  const problem = 'Thread store: a message needs an id and JSON text, as JSON.stringify writes it.'
  throw new CountersignError('invalid-argument', problem, { id })
}

function hashOf(text: string): Promise<string> {
  return sha256(JSON.stringify(text))
}
