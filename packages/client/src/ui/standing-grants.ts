import type { SessionGrant } from '@countersign/core'
import { called } from '../call-back.js'
import type { ChatClient } from '../client.js'
import { focusComposer } from './focus.js'

/** `unread`: the list could not be read. `unrevoked`: the server did not confirm that an approval has ended. */
export type GrantsProblem = 'unread' | 'unrevoked'

export interface GrantsSnapshot {
  readonly grants: readonly SessionGrant[]
  readonly problem: GrantsProblem | undefined
}

/**
 * The session approvals and mandates of a chat: read on subscription, after each run of this page, which may have given or used some, and
 * when the user returns to the page: another one may have given or revoked some.
 */
export interface StandingGrants {
  readonly subscribe: (listener: () => void) => () => void
  readonly getSnapshot: () => GrantsSnapshot
  readonly load: () => Promise<void>
  /** Revokes one by its id, or all. */
  readonly revoke: (id?: string) => Promise<void>
}

type Chat = Pick<ChatClient, 'subscribe' | 'getSnapshot' | 'grants' | 'revokeGrant'>

/** Follows the session approvals of `chat` while there are subscribers. */
export function standingGrants(chat: Chat): StandingGrants {
  const listeners = new Set<() => void>()
  let snapshot: GrantsSnapshot = { grants: [], problem: undefined }
  let loads = 0
  let leave = () => {}

  const become = (next: GrantsSnapshot) => {
    snapshot = next
    for (const listener of listeners) listener()
  }
  const load = async () => {
    const turn = ++loads
    const read = await chat.grants().then(
      (grants): GrantsSnapshot => ({ grants: keepSame(snapshot.grants, grants), problem: undefined }),
      (): GrantsSnapshot => ({ grants: snapshot.grants, problem: 'unread' }),
    )
    // An earlier request may be answered later; its list is dropped.
    if (turn === loads) become(read)
  }
  const onReturn = () => void (globalThis.document?.visibilityState === 'hidden' || load())
  const follow = () => {
    const left = new AbortController()
    let wasLoading = false
    void load()
    for (const type of ['focus', 'visibilitychange']) globalThis.addEventListener?.(type, onReturn, left)
    const unsubscribe = chat.subscribe(() => {
      const { isLoading } = chat.getSnapshot()
      if (wasLoading && !isLoading) void load()
      wasLoading = isLoading
    })
    left.signal.addEventListener('abort', unsubscribe)
    return () => left.abort()
  }

  return {
    getSnapshot: () => snapshot,
    load,
    subscribe(listener) {
      called(listener)
      if (listeners.size === 0) leave = follow()
      listeners.add(listener)
      return () => {
        if (listeners.delete(listener) && listeners.size === 0) leave()
      }
    },
    async revoke(id) {
      try {
        await chat.revokeGrant(id)
      } catch {
        // The result of an earlier request must not hide that this failed.
        loads++
        return become({ ...snapshot, problem: 'unrevoked' })
      }
      await load()
    },
  }
}

/** Keeps the object of an unchanged approval, so that the page does not re-render its row and the focus stays in it. */
function keepSame(before: readonly SessionGrant[], now: readonly SessionGrant[]): SessionGrant[] {
  const known = new Map(before.map((grant) => [JSON.stringify(grant), grant]))
  return now.map((grant) => known.get(JSON.stringify(grant)) ?? grant)
}

/** The id of the heading of the list, which can receive the focus. */
export const GRANTS_TITLE_ID = 'grants-title'

/** Revokes one, or all. The pressed button disappears: focuses the heading of the list, after the last one the composer. */
export async function revokeGrant(grants: StandingGrants, id?: string): Promise<void> {
  document.getElementById(GRANTS_TITLE_ID)?.focus()
  await grants.revoke(id)
  if (grants.getSnapshot().grants.length === 0) focusComposer()
}
