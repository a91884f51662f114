import { filled, getCountersignMetadata, isRecord } from '../value.js'
import { newMemory } from './patch-memory.js'
import type { ChatState } from './state.js'

/**
 * Metadata that grows incrementally is mutated in place as long as no reader has seen it; copying it for
 * every piece would take quadratic time. Whatever was read out of the state is never mutated.
 */

/** Maximum number of members of merged metadata. Further members are ignored; metadata that already has more is replaced. */
const MOST_MEMBERS = 1000

/** Member counts of merged metadata, so that each is counted only once. */
const sizes = new WeakMap<object, number>()

/** Everything was read: later changes go to copies. */
export function disown(state: ChatState): void {
  if (state.memory.isUsed) state.memory = newMemory(state.memory.copies)
}

/** An object that may be mutated: the object itself, or a copy if a reader may have seen it. */
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

/** Merges metadata key by key; the last write wins (AG-UI 1.0, metadata). */
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

/** The same, but merges the members of `metadata.countersign` too. */
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

/** Metadata with one member set, or removed if the value is `undefined`; `undefined` if nothing is left. */
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
