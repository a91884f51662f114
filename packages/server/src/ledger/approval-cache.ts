import { CountersignError } from '@countersign/core'
import { checkOptions, positiveNumber, text } from '../encoding/check-options.js'
import { ANY_TOOL, type Grant, scopeKeyText } from './grant.js'
import { type Ledger, ledgerRule } from './ledger.js'
import { memoryLedger } from './memory-ledger.js'

/** A tool by name, optionally of one MCP server, optionally limited to one `scopeKey` (as the tool's own returns it; default: no limit). */
export type CachedTool =
  | string
  | {
      readonly name: string
      readonly server?: string | undefined
      readonly scopeKey?: string | number | boolean | undefined
    }

export interface ApprovalCacheEntry {
  readonly approved: boolean
  /** When the entry was last set, in milliseconds since the epoch. */
  readonly timestamp: number
}

export interface ApprovalCacheOptions {
  /** Stores the grants; the engine must use the same one. Default: `defaultLedger()`. */
  readonly ledger?: Ledger | undefined
  /** The user whose grants these are: `context.subject`. Default `single-user`. */
  readonly subject?: string | undefined
  /** Lifetime of an entry, in milliseconds. Default: the ledger's `grantTtl`. */
  readonly ttl?: number | undefined
}

export interface ApprovalCacheStats {
  readonly threads: number
  readonly entries: number
  readonly approved: number
  readonly refused: number
}

/**
 * The session grants of one subject, for the application's own server code: a settings page, seeding, deleting a thread.
 * A view of the ledger's grants, not a second store. Never pass anything sent by a client to `set`.
 */
export class ApprovalCache {
  readonly #ledger: () => Ledger
  readonly #subject: string
  readonly #ttl: number | undefined

  /** @throws CountersignError `invalid-option` if an option is invalid or the subject empty. */
  constructor(options: ApprovalCacheOptions = {}) {
    checkOptions('ApprovalCache', options, { ledger: ledgerRule, subject: text, ttl: positiveNumber })
    const { ledger, subject = 'single-user', ttl } = options
    if (subject === '') {
      throw new CountersignError('invalid-option', 'ApprovalCache: subject must not be empty.', {
        option: 'subject',
      })
    }
    this.#ledger = ledger === undefined ? defaultLedger : () => ledger
    this.#subject = subject
    this.#ttl = ttl
  }

  /**
   * Approves a tool in a thread until it is revoked or expires, in any version and whatever its `scopes`. `false` stores a denial, which allows
   * nothing.
   *
   * @throws CountersignError `invalid-argument` if the thread id or the tool name is empty, or the ledger keeps no grants.
   */
  async set(threadId: string, tool: CachedTool, approved: boolean): Promise<void> {
    const key = this.#key(threadId, tool)
    const granted = key && (await this.#ledger().grant({ ...key, approved, ttl: this.#ttl, tool: ANY_TOOL }))
    if (granted?.status === 'granted') return
    const message =
      key === undefined
        ? 'ApprovalCache.set needs a thread id and a tool name.'
        : 'This ledger keeps no session approvals; use another one.'
    throw new CountersignError('invalid-argument', message)
  }

  /** `true`, `false`, or `undefined` if there is no entry. */
  async get(threadId: string, tool: CachedTool): Promise<boolean | undefined> {
    return (await this.entry(threadId, tool))?.approved
  }

  async has(threadId: string, tool: CachedTool): Promise<boolean> {
    return (await this.entry(threadId, tool)) !== undefined
  }

  async entry(threadId: string, tool: CachedTool): Promise<ApprovalCacheEntry | undefined> {
    const key = this.#key(threadId, tool)
    const grant = key && (await this.#ledger().findGrant(key, 'look'))
    return grant && { approved: grant.approved, timestamp: grant.grantedAt }
  }

  /** The live entries, in one thread or in all, oldest first. */
  list(threadId?: string): Promise<readonly Grant[]> {
    return this.#ledger().list(this.#subject, threadId)
  }

  async stats(): Promise<ApprovalCacheStats> {
    const grants = await this.list()
    const approved = grants.filter((grant) => grant.approved).length
    return {
      threads: new Set(grants.map((grant) => grant.threadId)).size,
      entries: grants.length,
      approved,
      refused: grants.length - approved,
    }
  }

  /** Removes the entries of one tool in one thread: for every MCP server and scope key, unless given. */
  async revoke(threadId: string, tool: CachedTool): Promise<void> {
    const key = this.#key(threadId, tool)
    if (key === undefined) return
    const isAnyScope = toolParts(tool).scopeKey === undefined
    await this.#ledger().revoke({ ...key, ...(isAnyScope && { scopeKey: undefined }) })
  }

  /** Removes all entries of one thread; call this when a thread ends or is deleted. */
  async clear(threadId: string): Promise<void> {
    await this.#ledger().revoke({ owner: this.#subject, threadId })
  }

  /** Removes all entries of this subject. */
  async clearAll(): Promise<void> {
    await this.#ledger().revoke({ owner: this.#subject })
  }

  #key(threadId: string, tool: CachedTool) {
    const { name, server, scopeKey } = toolParts(tool)
    if (threadId === '' || name === '') return undefined
    const key = scopeKey === undefined ? name : scopeKeyText(scopeKey)
    return { owner: this.#subject, threadId, toolName: name, toolServer: server, scopeKey: key }
  }
}

function toolParts(tool: CachedTool): Exclude<CachedTool, string> {
  return typeof tool === 'string' ? { name: tool } : tool
}

let sharedLedger: Ledger | undefined

/** The memory ledger shared by all agents of this process that were given none. */
export function defaultLedger(): Ledger {
  sharedLedger ??= memoryLedger()
  return sharedLedger
}

/** The session grants of the subject `single-user` in the default ledger. */
export const approvalCache: ApprovalCache = new ApprovalCache()
