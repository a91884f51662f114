import { asString, isRecord, type Message } from '@countersign/core'
import type { KnownMessage, KnownThread } from '../threads/known-threads.js'
import { branchOf, headOf } from './branch.js'

export interface PageHistory {
  /** The last user message that was replied to (`serverHistory` of the client). */
  readonly after?: string | undefined
  /** The same on a page whose own messages are not sent (the route of the AI SDK). It does not say which branch the request continues. */
  readonly replied?: string | undefined
  /** The last message that the page has and did not send. */
  readonly last?: string | undefined
  /** The user message that is to be replied to anew. */
  readonly regenerate?: string | undefined
  /** The user message that the new one replaces. */
  readonly edit?: string | undefined
  /** The messages are the page's copy of the whole conversation. */
  readonly isUpload: boolean
}

/** What `serverThreads` says with a request. */
export function readPage(forwardedProps: unknown): PageHistory {
  const own = isRecord(forwardedProps) && forwardedProps.countersign
  if (!isRecord(own)) return { isUpload: false }
  const { after, replied, last, regenerate, edit, upload } = own
  return {
    after: asString(after),
    replied: asString(replied),
    last: asString(last),
    regenerate: asString(regenerate),
    edit: asString(edit),
    isUpload: upload === true,
  }
}

/**
 * The branch that the request continues: another than the one that is shown if it replaces a message, or if its user wrote it below
 * another version, which was shown then. A message that the thread does not have replaces none, and without a new message nothing is
 * replaced. What is sent again, because its response was lost, continues the branch that it is on; answers and results
 * count on the one that is shown.
 */
export function continuedBranch(
  { messages, byId }: KnownThread,
  shown: readonly KnownMessage[],
  { after, regenerate, edit }: PageHistory,
  given: readonly Message[],
  answers: readonly unknown[],
): readonly KnownMessage[] {
  const find = (id: string | undefined) => (id === undefined ? undefined : byId.get(id))
  const to = (head: string | null | undefined) => branchOf({ head: head ?? null, messages, byId })
  const again = find(regenerate)
  if (again !== undefined) return to(again.id)
  const users = new Set(given.flatMap(({ role, id }) => (role === 'user' ? id : [])))
  const replaced = find(edit)
  if (replaced !== undefined) {
    const isVersion = ({ id, parent }: KnownMessage) => id !== edit && parent === replaced.parent
    const made = messages.findLast((message) => isVersion(message) && users.has(message.id))
    if (made !== undefined) return to(headOf(messages, made.id))
  }
  const isNew = [...users].some((id) => !byId.has(id))
  if (isNew && replaced !== undefined) return to(replaced.parent)
  const sent = given.findLast(({ role, id }) => role === 'user' && byId.has(id))
  // A page that names no message before those that it sends may send all that it has.
  const isSentAgain = after === undefined ? sent === given.at(-1) : given.every(({ role }) => role !== 'tool')
  const last =
    (isSentAgain && answers.length === 0 ? find(sent?.id) : undefined) ?? (isNew ? find(after) : undefined)
  return last === undefined || shown.includes(last) ? shown : to(headOf(messages, last.id))
}

/** The end of what is stored behind the user message `last`: of what was shown, or else the newest. */
export function replacedBy(
  { head, messages, byId }: KnownThread,
  shown: readonly KnownMessage[],
  last: string | null,
): string | undefined {
  if (last === null || byId.get(last)?.message.role !== 'user') return undefined
  const end = head !== last && shown.some(({ id }) => id === last) ? head : headOf(messages, last)
  return end === null || end === last ? undefined : end
}
