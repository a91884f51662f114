import { column, type Database, type SqliteStatement } from './file-ledger-sqlite.js'
import type { Grant, GrantKey, GrantRequest, GrantResult, GrantSelector } from './grant.js'
import { isLive, matches, newGrant, takeGrant } from './grant-row.js'

const SWEPT_AT_ONCE = 8

/** The grants of a file ledger. Its methods are parts of a transaction. What does not fit is removed, oldest first. */
export class FileGrants {
  readonly #get: SqliteStatement
  readonly #put: SqliteStatement
  readonly #remove: SqliteStatement
  readonly #ofOwner: SqliteStatement
  readonly #sweep: SqliteStatement
  readonly #evict: SqliteStatement
  readonly #revision: SqliteStatement
  readonly #raise: SqliteStatement
  readonly #revoked: SqliteStatement
  readonly #noteRevoked: SqliteStatement

  constructor(
    database: Database,
    private readonly limits: {
      readonly maxPerThread: number
      /** Default lifetime of a grant, in milliseconds. */
      readonly ttl: number
    },
  ) {
    this.#get = database.prepare('select body from grants where key = ?')
    this.#put = database.prepare(
      'insert or replace into grants (key, owner, thread, kept_until, body) values (?, ?, ?, ?, ?)',
    )
    this.#remove = database.prepare('delete from grants where key = ?')
    this.#ofOwner = database.prepare('select body from grants where owner = ? order by seq')
    this.#sweep = database.prepare(
      'delete from grants where seq in (select seq from grants where kept_until <= ? limit ?)',
    )
    this.#evict = database.prepare(
      'delete from grants where seq in (select seq from grants where owner = ? and thread = ? order by seq desc limit -1 offset ?)',
    )
    this.#revision = database.prepare(`select value from meta where name = 'revision'`)
    this.#raise = database.prepare(`update meta set value = value + 1 where name = 'revision'`)
    this.#revoked = database.prepare('select revision from revocations where owner = ?')
    this.#noteRevoked = database.prepare('insert or replace into revocations (owner, revision) values (?, ?)')
  }

  /** Rises with every revocation. */
  revision(): number {
    return Number(column(this.#revision.get(), 'value'))
  }

  grant(request: GrantRequest, now: number): GrantResult {
    const owner = text(request.owner)
    const revoked = Number(column(this.#revoked.get(owner), 'revision') ?? 0)
    if (request.revision !== undefined && request.revision < revoked) return { status: 'revoked' }
    this.#sweep.run(now, SWEPT_AT_ONCE)
    const grant = newGrant(request, now, this.limits.ttl)
    this.#write(grant)
    this.#evict.run(owner, text(grant.threadId), this.limits.maxPerThread)
    return { status: 'granted', grant }
  }

  find(key: GrantKey, purpose: 'look' | 'use', now: number): Grant | undefined {
    const row = this.#get.get(rowKey(key))
    const { found, left } = takeGrant(row === undefined ? undefined : grantOf(row), purpose, now)
    if (left !== undefined) this.#write(left)
    return found
  }

  revoke(selector: GrantSelector, now: number): number {
    this.#raise.run()
    this.#noteRevoked.run(text(selector.owner), this.revision())
    const named = this.#of(selector.owner).filter((grant) => matches(grant, selector))
    for (const grant of named) this.#remove.run(rowKey(grant))
    return named.filter((grant) => isLive(grant, now)).length
  }

  list(owner: string, threadId: string | undefined, now: number): Grant[] {
    return this.#of(owner)
      .filter((grant) => isLive(grant, now) && (threadId === undefined || grant.threadId === threadId))
      .sort((one, other) => one.grantedAt - other.grantedAt)
  }

  #of(owner: string): Grant[] {
    return this.#ofOwner.all(text(owner)).map(grantOf)
  }

  #write(grant: Grant): void {
    const { owner, threadId, expiresAt } = grant
    this.#put.run(rowKey(grant), text(owner), text(threadId), expiresAt, JSON.stringify(grant))
  }
}

function grantOf(row: unknown): Grant {
  return JSON.parse(String(column(row, 'body')))
}

function rowKey({ owner, threadId, toolServer, toolName, scopeKey }: GrantKey): string {
  return JSON.stringify([owner, threadId, toolServer, toolName, scopeKey])
}

/** JSON, so that a text which is not well-formed Unicode stays apart from others. */
function text(part: string): string {
  return JSON.stringify(part)
}
