import type { Grant, GrantKey, GrantRequest, GrantResult, GrantSelector } from './grant.js'
import { isLive, matches, newGrant, takeGrant } from './grant-row.js'
import { ledgerKey } from './ledger.js'

/** The grants of a memory ledger, by owner and thread. What does not fit is evicted, of the owner who has the most: it is asked again. */
export class MemoryGrants {
  /** By owner and thread, in the order of the last grant made there. */
  readonly #threads = new Map<string, Map<string, Grant>>()
  /** The keys of an owner's threads, in the same order. */
  readonly #owners = new Map<string, Set<string>>()
  /** The revision of each owner's last revocation; an owner not in it counts as revoked at the floor. */
  readonly #revoked = new Map<string, number>()
  #floor = 0
  #revision = 0

  constructor(
    private readonly limits: {
      readonly maxThreads: number
      readonly maxPerThread: number
      /** Default lifetime of a grant, in milliseconds. */
      readonly ttl: number
    },
  ) {}

  /** Rises with every revocation. */
  get revision(): number {
    return this.#revision
  }

  grant(request: GrantRequest, now: number): GrantResult {
    const { owner, threadId } = request
    if (request.revision !== undefined && request.revision < (this.#revoked.get(owner) ?? this.#floor)) {
      return { status: 'revoked' }
    }
    const grant = newGrant(request, now, this.limits.ttl)
    const grants = this.#touch(owner, threadId)
    grants.delete(grantKey(grant))
    grants.set(grantKey(grant), grant)
    evictOldest(grants, this.limits.maxPerThread)
    return { status: 'granted', grant }
  }

  find(key: GrantKey, purpose: 'look' | 'use', now: number): Grant | undefined {
    const grants = this.#threads.get(ledgerKey(key.owner, key.threadId))
    const { found, left } = takeGrant(grants?.get(grantKey(key)), purpose, now)
    if (left !== undefined) grants?.set(grantKey(key), left)
    return found
  }

  revoke(selector: GrantSelector, now: number): number {
    this.#noteRevocation(selector.owner)
    let removed = 0
    for (const thread of [...(this.#owners.get(selector.owner) ?? [])]) {
      const grants = this.#threads.get(thread)
      for (const [key, grant] of grants ?? []) {
        if (!matches(grant, selector)) continue
        grants?.delete(key)
        if (isLive(grant, now)) removed++
      }
      if (grants?.size === 0) this.#forget(selector.owner, thread)
    }
    return removed
  }

  list(owner: string, threadId: string | undefined, now: number): Grant[] {
    const threads = threadId === undefined ? (this.#owners.get(owner) ?? []) : [ledgerKey(owner, threadId)]
    return [...threads]
      .flatMap((thread) => [...(this.#threads.get(thread)?.values() ?? [])])
      .filter((grant) => isLive(grant, now))
      .sort((one, other) => one.grantedAt - other.grantedAt)
  }

  #touch(owner: string, threadId: string): Map<string, Grant> {
    const key = ledgerKey(owner, threadId)
    const grants = this.#threads.get(key) ?? new Map<string, Grant>()
    this.#threads.delete(key)
    this.#threads.set(key, grants)
    const threads = this.#owners.get(owner)
    if (threads === undefined) this.#owners.set(owner, new Set([key]))
    else {
      threads.delete(key)
      threads.add(key)
    }
    this.#evictThreads()
    return grants
  }

  #evictThreads(): void {
    while (this.#threads.size > this.limits.maxThreads) {
      const [most] = [...this.#owners].reduce((one, other) => (other[1].size > one[1].size ? other : one))
      const [oldest] = this.#owners.get(most) ?? []
      if (oldest === undefined) return
      this.#forget(most, oldest)
    }
  }

  #forget(owner: string, thread: string): void {
    this.#threads.delete(thread)
    const threads = this.#owners.get(owner)
    threads?.delete(thread)
    if (threads?.size === 0) this.#owners.delete(owner)
  }

  // An owner no longer remembered counts as having revoked just now: a grant in flight is then asked again, never made.
  #noteRevocation(owner: string): void {
    this.#revision++
    this.#revoked.delete(owner)
    this.#revoked.set(owner, this.#revision)
    for (const [oldest, revision] of this.#revoked) {
      if (this.#revoked.size <= this.limits.maxThreads) return
      this.#revoked.delete(oldest)
      this.#floor = revision
    }
  }
}

function grantKey({ toolName, toolServer, scopeKey }: Omit<GrantKey, 'owner' | 'threadId'>): string {
  return ledgerKey(toolServer, toolName, scopeKey)
}

function evictOldest(map: Map<string, unknown>, limit: number): void {
  for (const key of map.keys()) {
    if (map.size <= limit) return
    map.delete(key)
  }
}
