import type { ChatClient } from '@countersign/client'
import type { SessionGrant } from '@countersign/core'

/** What failed: the list could not be read, or the server did not confirm that an approval has ended. */
export type GrantsProblem = 'unread' | 'unrevoked'

export interface GrantsSnapshot {
  readonly grants: readonly SessionGrant[]
  readonly problem: GrantsProblem | undefined
}

/** The standing approvals of a chat: read when somebody looks, and again when a run has settled an answer for the session. */
export interface StandingGrants {
  readonly subscribe: (listener: () => void) => () => void
  readonly getSnapshot: () => GrantsSnapshot
  readonly load: () => Promise<void>
  /** Ends one by its id, or all. */
  readonly revoke: (id?: string) => Promise<void>
}

type Chat = Pick<ChatClient, 'subscribe' | 'getSnapshot' | 'grants' | 'revokeGrant'>

/** Follows the standing approvals of `chat` as long as somebody listens. */
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
    // A list that was asked for earlier may come later.
    if (turn === loads) become(read)
  }
  const follow = () => {
    let before = sessionAnswers(chat)
    void load()
    return chat.subscribe(() => {
      if (chat.getSnapshot().isLoading) return
      const now = sessionAnswers(chat)
      if (now !== before) void load()
      before = now
    })
  }

  return {
    getSnapshot: () => snapshot,
    load,
    subscribe(listener) {
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
        // A list that was asked for before must not hide that this failed.
        loads++
        return become({ ...snapshot, problem: 'unrevoked' })
      }
      await load()
    },
  }
}

/** What stands as before stays the same object, so that a page leaves its row alone, with the focus in it. */
function keepSame(before: readonly SessionGrant[], now: readonly SessionGrant[]): SessionGrant[] {
  const known = new Map(before.map((grant) => [JSON.stringify(grant), grant]))
  return now.map((grant) => known.get(JSON.stringify(grant)) ?? grant)
}

/** How many answers for the session the server has taken. */
function sessionAnswers({ getSnapshot }: Chat): number {
  const parts = getSnapshot().messages.flatMap((message) => message.parts)
  const approvals = parts.flatMap((part) => (part.type === 'tool-call' ? [part.approval] : []))
  return approvals.filter(
    (approval) => approval?.approved && approval.scope === 'session' && approval.delivery === 'settled',
  ).length
}
