import { getCountersignMetadata, type Message, type ToolMessage } from '@countersign/core'
import { groupedBy } from '../encoding/groups.js'
import type { KnownMessage } from '../threads/known-threads.js'
import type { StoredMessage, StoredThread } from '../threads/thread-store.js'

/** A message in the tree of its thread. */
export type TreeMessage = Pick<StoredMessage, 'id' | 'parent'>

/** The messages of the branch that is shown, from its first to `head`. A broken or circular chain ends where it breaks. */
export function branchOf<M extends TreeMessage>({
  head,
  messages,
  byId = new Map(messages.map((message) => [message.id, message])),
}: {
  readonly head: string | null
  readonly messages: readonly M[]
  readonly byId?: ReadonlyMap<string, M> | undefined
}): readonly M[] {
  const branch: M[] = []
  let left = byId.size
  for (let id = head; id !== null && left-- > 0; ) {
    const message = byId.get(id)
    if (message === undefined) break
    branch.push(message)
    id = message.parent
  }
  // Below 0: the chain is circular.
  return (left < 0 ? [...new Set(branch)] : branch).reverse()
}

/** Messages as they are stored behind the message `last`. */
export function chain(messages: readonly Message[], last: string | null): readonly StoredMessage[] {
  return messages.map((message, index) => ({
    id: message.id,
    parent: messages[index - 1]?.id ?? last,
    message: JSON.stringify(message),
  }))
}

type Tree = Pick<StoredThread, 'head' | 'messages'>

/**
 * The messages of the branch that is shown. Where an edit or a regeneration made several versions of one, its `metadata.countersign.versions`
 * lists the ids of all of them, its own included, in the order in which they were made.
 */
export function shownMessages(tree: Tree): readonly Message[] {
  const branch = branchOf(tree)
  const versions = branch.length < tree.messages.length ? versionsOf(tree, branch) : new Map()
  return branch.map(({ id, message }) => {
    const shown: Message = JSON.parse(message)
    const ids: readonly string[] | undefined = versions.get(id)
    if (ids === undefined) return shown
    const countersign = { ...getCountersignMetadata(shown.metadata), versions: ids }
    return { ...shown, metadata: { ...shown.metadata, countersign } }
  })
}

/** The head of the branch that a message is on, or `undefined` for an unknown message. If there are several, the newest. */
export function headOf(messages: readonly TreeMessage[], id: string): string | undefined {
  const children = childrenOf(messages)
  const below = new Set([id])
  for (const at of below) for (const child of children.get(at) ?? []) below.add(child.id)
  return messages.findLast((message) => below.has(message.id) && !children.has(message.id))?.id
}

/** How many of the first messages two branches share. */
function sharedBy(one: readonly TreeMessage[], other: readonly TreeMessage[]): number {
  const differs = one.findIndex((message, at) => message !== other[at] && message.id !== other[at]?.id)
  return differs < 0 ? one.length : differs
}

function versionsOf(
  { messages }: Tree,
  branch: readonly StoredMessage[],
): ReadonlyMap<string, readonly string[]> {
  const children = childrenOf(messages)
  const shown = new Set(branch)
  /** What a page shows of a version: thoughts and results belong to a message of the user or the assistant. */
  const spoken = (message: StoredMessage): StoredMessage | undefined => {
    let at: StoredMessage | undefined = message
    for (let left = messages.length; at !== undefined && !isSpoken(at) && left > 0; left--) {
      const next: readonly StoredMessage[] = children.get(at.id) ?? []
      at = next.find((child) => shown.has(child)) ?? next.at(-1)
    }
    return at
  }
  const versions = new Map<string, readonly string[]>()
  for (const message of branch) {
    const all = children.get(message.parent) ?? []
    const own = all.length > 1 ? spoken(message) : undefined
    if (own === undefined) continue
    versions.set(own.id, [...new Set(all.map((child) => spoken(child)?.id ?? child.id))])
  }
  return versions
}

function childrenOf<M extends TreeMessage>(messages: readonly M[]): ReadonlyMap<string | null, readonly M[]> {
  return groupedBy(messages, ({ parent }) => parent)
}

function isSpoken({ message }: StoredMessage): boolean {
  const { role }: Message = JSON.parse(message)
  return role === 'user' || role === 'assistant'
}

/** Closes the calls without a result in these of the messages, and returns the results: no request on a branch that was left can be answered. */
export type CloseCalls = (
  messages: readonly Message[],
  ids: ReadonlySet<string>,
  newId: () => string,
) => Promise<readonly ToolMessage[]>

/** Closes what is open on the branch `shown` where `next` differs from it. Returns what must be stored on it. */
export async function leaveBranch(
  shown: readonly KnownMessage[],
  next: readonly KnownMessage[],
  closeCalls: CloseCalls,
  newId: () => string,
): Promise<readonly StoredMessage[]> {
  const left = shown.slice(sharedBy(shown, next))
  if (left.length === 0) return []
  const messages = shown.map(({ message }) => message)
  const closed = await closeCalls(messages, new Set(left.map(({ id }) => id)), newId)
  return chain(closed, left.at(-1)?.id ?? null)
}
