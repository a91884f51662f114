import { filled, getCountersignMetadata, isRecord } from '../value.js'
import { newMemory } from './patch-memory.js'
import type { ChatState } from './state.js'

/**
 * What grows piece by piece is changed in place as long as nobody outside has seen it: a copy for each piece would cost the square of
 * what a stream sends. Whatever is read out of the state belongs to its reader, who keeps it unchanged.
 */

/** How many members metadata may have that is merged. More are left out, and what has more already gives way to what comes. */
const MOST_MEMBERS = 1000

/** How many members there are in what was merged, so that they are counted once. */
const sizes = new WeakMap<object, number>()

/** All that there is was read: from now on changes are made to copies. */
export function disown(state: ChatState): void {
  if (state.memory.isUsed) state.memory = newMemory(state.memory.copies)
}

/** An object that may be changed: itself, or a copy where somebody may have seen it. */
function own(state: ChatState, members: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const { owned } = state.memory
  if (owned.has(members) && !Object.isFrozen(members)) return members
  const size = sizeOf(members)
  const copy = size > MOST_MEMBERS ? {} : { ...members }
  owned.add(copy)
  state.memory.isUsed = true
  return copy
}

function sizeOf(members: object): number {
  const size = sizes.get(members) ?? Object.keys(members).length
  sizes.set(members, size)
  return size
}

/** Metadata merged key by key, the last write winning (AG-UI 1.0, metadata). */
export function merge(
  state: ChatState,
  metadata: Readonly<Record<string, unknown>> | undefined,
  more: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const merged = own(state, metadata ?? {})
  let size = sizeOf(merged)
  for (const [key, value] of Object.entries(more)) {
    const isNew = !Object.hasOwn(merged, key)
    if (key === '__proto__' || (isNew && size >= MOST_MEMBERS)) continue
    merged[key] = value
    if (isNew) size++
  }
  sizes.set(merged, size)
  return merged
}

/** The same, with `metadata.countersign` merged by itself. */
export function mergeMetadata(
  state: ChatState,
  metadata: Readonly<Record<string, unknown>> | undefined,
  more: Readonly<Record<string, unknown>>,
): Record<string, unknown> {
  const { countersign, ...rest } = more
  const merged = merge(state, metadata, rest)
  if (isRecord(countersign)) merged.countersign = merge(state, getCountersignMetadata(merged), countersign)
  return merged
}

/** Metadata with one member, or without it where there is no value; `undefined` where nothing is left. */
export function withMember(
  state: ChatState,
  metadata: Readonly<Record<string, unknown>> | undefined,
  key: string,
  value: unknown,
): Record<string, unknown> | undefined {
  const merged = own(state, metadata ?? {})
  if (value === undefined) delete merged[key]
  else merged[key] = value
  sizes.delete(merged)
  return filled(merged)
}
