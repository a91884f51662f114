import type { EventOf } from '../protocol/events.js'
import { asString, isRecord, omitUndefined } from '../value.js'
import type { Subagent } from './data.js'
import type { ChatState } from './state.js'

/** Maximum number of parents kept for a subagent: the nearest ones. */
const mostParents = 16

interface Attributed {
  readonly subagentRunId?: string | undefined
}

/** SUBAGENT_STARTED: stores the name and the parents. */
export function announce(state: ChatState, event: EventOf<'SUBAGENT_STARTED'>): void {
  const { subagentRunId: id, name, parentSubagentRunId } = event
  const parent = parentSubagentRunId === undefined ? undefined : subagentOf(state, parentSubagentRunId)
  state.subagents.set(id, omitUndefined({ id, name, parents: parent && parentsUnder(parent) }))
}

function parentsUnder({ parents = [], ...parent }: Subagent): Subagent['parents'] {
  return [...parents, parent].slice(-mostParents)
}

function subagentOf(state: ChatState, id: string): Subagent {
  return state.subagents.get(id) ?? { id }
}

/** The metadata that marks output of a subagent. */
export function subagentMetadata(
  state: ChatState,
  { subagentRunId: id }: Attributed,
): { subagent: Subagent } | undefined {
  return id === undefined ? undefined : { subagent: subagentOf(state, id) }
}

/**
 * The subagent that produced a message or call, or raised an interrupt, read from its `metadata`; `undefined`
 * for the agent itself. Names come from the server: show them with `displayText`.
 */
export function readSubagent(metadata: unknown): Subagent | undefined {
  const subagent = readNamed(isRecord(metadata) ? metadata.subagent : undefined)
  if (!subagent) return undefined
  const { parents } = Object(metadata).subagent
  const above = Array.isArray(parents) ? parents.flatMap((parent) => readNamed(parent) ?? []) : []
  return above.length > 0 ? { ...subagent, parents: above } : subagent
}

function readNamed(value: unknown): Pick<Subagent, 'id' | 'name'> | undefined {
  if (!isRecord(value) || typeof value.id !== 'string') return undefined
  return omitUndefined({ id: value.id, name: asString(value.name) })
}

/** The id of the subagent in metadata; `undefined` for output of the agent itself. */
export function subagentIdOf(metadata: Readonly<Record<string, unknown>> | undefined): string | undefined {
  const { subagent } = metadata ?? {}
  return isRecord(subagent) ? asString(subagent.id) : undefined
}

/** Converts metadata from AG-UI, which has a field only for a subagent's id. */
export function withSubagent(
  metadata: Readonly<Record<string, unknown>> | undefined,
  { subagentRunId: id }: Attributed,
): Record<string, unknown> | undefined {
  if (id === undefined) return metadata && { ...metadata }
  return subagentIdOf(metadata) === id ? { ...metadata } : { ...metadata, subagent: { id } }
}
