import { CountersignError } from '@countersign/core'
import { checkKnown, type Rules, wholeNumber } from '../encoding/check-options.js'
import { copyOf } from '../encoding/copy.js'
import type { Grant, GrantResult } from './grant.js'
import { matches, newGrant, takeGrant } from './grant-row.js'
import type {
  ApprovalRef,
  ApprovalState,
  ClaimResult,
  IssueResult,
  Ledger,
  LedgerEntry,
  Owner,
  ReclaimResult,
} from './ledger.js'
import {
  boundOutcome,
  claimRow,
  completeRow,
  outcomeSize,
  type RowStep,
  reclaimRow,
  renewRow,
  sameRecord,
  stateAt,
  unavailable,
} from './ledger-row.js'
import {
  addDenial,
  addMandate,
  findDenial,
  isLimited,
  isMandate,
  returnUse,
  useMandate,
  withoutApproval,
} from './mandate-row.js'
import {
  approvalKey,
  approvalRow,
  callTag,
  DENIALS,
  denialsKey,
  denialsRow,
  entryOf,
  GRANTS,
  grantKey,
  grantRow,
  grantsIn,
  keyOfGrant,
  MANDATES,
  mandatesKey,
  mandatesOf,
  mandatesRow,
  openList,
} from './row-format.js'
import type { Change, RowStore } from './row-store.js'

/** Limits of every ledger. */
export interface LedgerLimits {
  /**
   * Session approvals kept per owner; the oldest is dropped first. Default 1,000. Mandates are counted by themselves, by tool and conversation,
   * and so are standing denials. Of these none is dropped: a new one is not stored.
   */
  readonly maxGrantsPerOwner?: number | undefined
  /** Lifetime of a grant whose request has none, in milliseconds. Default seven days. */
  readonly grantTtl?: number | undefined
  /** Requests that may be open in one thread, because a run reads all of them. Default 1,024. */
  readonly maxOpenPerThread?: number | undefined
  /** Bytes, as UTF-8, of the open requests of one thread. Default 4 MiB. */
  readonly maxOpenBytesPerThread?: number | undefined
}

/** What each limit of a ledger must be. */
export const ledgerLimitRules: Rules<LedgerLimits> = {
  maxGrantsPerOwner: wholeNumber,
  grantTtl: wholeNumber,
  maxOpenPerThread: wholeNumber,
  maxOpenBytesPerThread: wholeNumber,
}

/**
 * A ledger on a row store: memory, a file, Redis, a database. Its rules are implemented here, in `ledger-row.ts`, `grant-row.ts` and `mandate-row.ts`, once for all stores;
 * `row-format.ts` says how the rows are written.
 *
 * @throws CountersignError `invalid-option` if a limit is not a positive integer.
 */
export function createLedger(store: RowStore, limits: LedgerLimits = {}): Ledger {
  checkKnown('createLedger', limits, ledgerLimitRules)
  const { maxGrantsPerOwner: maxGrants = 1000, grantTtl = 7 * 24 * 60 * 60 * 1000 } = limits
  const room = {
    rows: limits.maxOpenPerThread ?? 1024,
    bytes: limits.maxOpenBytesPerThread ?? 4 * 1024 * 1024,
  }
  const changed = store.changed?.bind(store)

  /** Reads and changes one approval in one atomic step; `more` adds to the change. */
  function step<Result>(
    ref: ApprovalRef,
    unknown: Result,
    decide: (entry: LedgerEntry, now: number) => RowStep<Result>,
    more?: (entry: LedgerEntry, state: ApprovalState) => Pick<Change<Result>, 'row' | 'undo' | 'whenFull'>,
  ): Promise<Result> {
    return store.update(ref.owner, [approvalKey(ref)], ([row], now) => {
      if (row === undefined) return { result: unknown }
      const entry = entryOf(row)
      const { result, state } = decide(entry, now)
      if (state === undefined) return { result }
      return { result, row: approvalRow(entry.record, state), ...more?.(entry, state) }
    })
  }

  /** The current revision of an owner's grants; see {@link REVISION}. */
  function revisionOf(owner: Owner): Promise<number> {
    return store.update(owner, [REVISION], ([before], now) => {
      const number = before === undefined ? newRevision() : Number(before.state)
      if (before !== undefined && before.keptUntil - now > REVISION_MS / 2) return { result: number }
      const state = String(number)
      const row = { record: '', state, keptUntil: now + REVISION_MS, expendable: true }
      // Without it, no grant follows, but the answer counts.
      return { result: number, row, whenFull: number }
    })
  }

  /** An owner's grants that have not expired. */
  async function grantsOf(owner: string): Promise<readonly Grant[]> {
    const lists = await Promise.all([GRANTS, MANDATES, DENIALS].map((list) => store.list(owner, list)))
    return lists.flatMap(({ rows, now }) => rows.flatMap(grantsIn).filter(({ expiresAt }) => now < expiresAt))
  }

  return {
    get id() {
      return store.id
    },
    durable: store.durable,

    async issue(record) {
      return store.update<IssueResult>(record.owner, [approvalKey(record)], ([row]) => {
        if (row !== undefined) {
          const same = sameRecord(JSON.parse(row.record), record)
          return { result: { status: same ? 'unchanged' : 'conflict' } }
        }
        const issued = approvalRow(record, { phase: 'issued' })
        return { result: { status: 'issued' }, row: issued, room, whenFull: { status: 'full' } }
      })
    },

    async lookup(ref) {
      return store.update(ref.owner, [approvalKey(ref)], ([row], now) => ({
        result: row && entryAt(entryOf(row), now),
      }))
    },

    async unsettled(owner, threadId) {
      const { rows, now } = await store.list(owner, openList(threadId))
      return rows.map((row) => entryAt(entryOf(row), now))
    },

    async settled(owner, threadId, toolCallIds) {
      const rows = await store.latest(
        owner,
        toolCallIds.map((id) => callTag(threadId, id)),
      )
      return rows.map(entryOf).filter(({ state }) => state.phase === 'done')
    },

    async claim(ref, answer, holder, leaseMs) {
      // Only these answers lead to a grant.
      const leadsToGrant =
        answer.decision === 'approve' && (answer.scope === 'session' || answer.mandate !== undefined)
      // Read before the claim, so that any later revocation changes it.
      const revision = leadsToGrant ? await revisionOf(ref.owner) : 0
      const decide = (entry: LedgerEntry, now: number) =>
        claimRow(entry, answer, holder, { now, leaseMs, revision })
      return step<ClaimResult>(ref, NOT_ISSUED, decide, (...entry) => ({
        ...undoClaim(...entry),
        whenFull: FULL,
      }))
    },

    async renew(ref, holder, leaseMs) {
      return step(ref, { status: 'lost' }, ({ state }, now) => renewRow(state, holder, { now, leaseMs }))
    },

    async complete(ref, holder, outcome) {
      const bounded = await boundOutcome(outcome)
      const isLong =
        (bounded.type === 'result' || bounded.type === 'error') && outcomeSize(bounded) > MAX_SHORT_BYTES
      const trace = store.shortens && isLong ? await unavailable(bounded) : undefined
      return step(
        ref,
        NOT_ISSUED,
        ({ state }, now) => completeRow(state, holder, bounded, now),
        ({ record }, state) => (trace === undefined ? {} : { row: approvalRow(record, state, trace) }),
      )
    },

    async reclaim(ref, holder, leaseMs) {
      const decide = (entry: LedgerEntry, now: number) => reclaimRow(entry, holder, { now, leaseMs })
      return step<ReclaimResult>(ref, NOT_ISSUED, decide, undoClaim)
    },

    changed: changed && ((ref, signal) => changed(ref.owner, approvalKey(ref), signal)),

    async grant(request) {
      return store.update<GrantResult>(
        request.owner,
        [keyOfGrant(request), REVISION],
        ([row, stored], now) => {
          const isRevoked = request.revision !== undefined && request.revision !== Number(stored?.state)
          const grant = newGrant(request, now, grantTtl)
          const counts = isMandate(grant) && grant.approved
          if (isRevoked && !counts) return { result: REVOKED }
          if (!isMandate(grant)) return { result: grantedOf(grant), row: grantRow(grant), newest: maxGrants }
          const more = row === undefined ? { rows: maxGrants, bytes: Number.MAX_SAFE_INTEGER } : undefined
          if (grant.approved) {
            const before = mandatesOf(row)
            const added = addMandate(before, grant, { ...request, isRevoked }, now)
            if (typeof added === 'string') return { result: { status: added } }
            const left = added ?? before
            const isOver = request.age !== undefined && !left.some(({ id }) => id === grant.id)
            const inForce = left.find(({ scopeKey }) => scopeKey === grant.scopeKey) ?? grant
            // A mandate that is still in force counts the call all the same.
            const result = isRevoked || isOver ? REVOKED : grantedOf(inForce)
            const whenFull = isLimited(grant, request.call) ? UNCOUNTED : FULL
            return { result, row: added && mandatesRow(added), room: more, whenFull }
          }
          const { stored: denial, left } = addDenial(mandatesOf(row), grant, now)
          if (left === undefined) return { result: FULL }
          return { result: grantedOf(denial), row: denialsRow(left), room: more, whenFull: FULL }
        },
      )
    },

    async findGrant(key, purpose) {
      return store.update(key.owner, [grantKey(key)], ([row], now): Change<Grant | undefined> => {
        const { found, left } = takeGrant(row && JSON.parse(row.state), purpose, now)
        return { result: found, row: left && grantRow(left) }
      })
    },

    async findMandate(call, purpose) {
      const keys = [mandatesKey(call), denialsKey(call)]
      return store.update(call.owner, keys, ([row, denials], now): Change<Grant | undefined> => {
        const denial = findDenial(mandatesOf(denials), call, now)
        if (denial !== undefined) return { result: copyOf(denial) }
        const { found, left } = useMandate(mandatesOf(row), call, purpose, now)
        return { result: copyOf(found), row: left && mandatesRow(left) }
      })
    },

    async returnUse(call, callKey) {
      return store.update(call.owner, [mandatesKey(call)], ([row]): Change<void> => {
        const left = returnUse(mandatesOf(row), callKey)
        return { result: undefined, row: left && mandatesRow(left) }
      })
    },

    async revoke(selector) {
      const { owner, approvalId } = selector
      if (approvalId === undefined)
        await store.update(owner, [REVISION], () => ({ result: undefined, row: null }))
      let removed = 0
      // Used up ones as well: a use that is given back must not bring one back.
      for (const grant of (await grantsOf(owner)).filter((one) => matches(one, selector))) {
        removed += await store.update(owner, [keyOfGrant(grant)], ([row]) => {
          const before = row === undefined ? [] : grantsIn(row)
          if (!before.some(({ id }) => id === grant.id)) return { result: 0 }
          const left = before.filter(isMandate).flatMap((one) => {
            if (one.id !== grant.id) return [one]
            return approvalId === undefined ? [] : (withoutApproval(one, approvalId) ?? [])
          })
          const rowOf = grant.approved ? mandatesRow : denialsRow
          return { result: 1, row: left.length === 0 ? null : rowOf(left) }
        })
      }
      return removed
    },

    async list(owner, threadId) {
      return (await grantsOf(owner))
        .filter((grant) => grant.usesLeft !== 0 && (threadId === undefined || grant.threadId === threadId))
        .sort((one, other) => one.grantedAt - other.grantedAt)
    },

    audit: async (entry) => store.append(JSON.stringify(entry), entry.ownerHash),
    async *auditTrail() {
      for await (const line of store.lines()) yield JSON.parse(line)
    },
  }
}

const NOT_ISSUED = { status: 'not-issued' } as const

/** Outcomes of at most this many bytes are never dropped to make room. */
const MAX_SHORT_BYTES = 256

/**
 * The key of an owner's revision: a random number that every revocation removes, so that the next one differs. A grant names the
 * revision at the time its verdict was claimed. If that is no longer current, something was revoked, or the store dropped the number,
 * which counts as a revocation.
 */
const REVISION = 'revision'

/** How long a revision is kept after its last use. */
const REVISION_MS = 35 * 24 * 60 * 60 * 1000

/** A copy: what is cached is decided by. */
const grantedOf = (grant: Grant) => ({ status: 'granted', grant: copyOf(grant) }) as const
const REVOKED = { status: 'revoked' } as const
const FULL = { status: 'full' } as const
const UNCOUNTED = { status: 'uncounted' } as const

/** A random number, practically never used before. */
function newRevision(): number {
  const [high = 0, low = 0] = globalThis.crypto.getRandomValues(new Uint32Array(2))
  return (high % 0x100000) * 0x100000000 + low + 1
}

/** If the holder was told that its claim failed, the claim is undone: it must not block the request until its lease ends. */
function undoClaim(
  { record, state: before }: LedgerEntry,
  state: ApprovalState,
): Pick<Change<never>, 'undo'> {
  if (state.phase !== 'claimed') return {}
  return { undo: { row: approvalRow(record, before), until: state.leaseUntil } }
}

function entryAt({ record, state }: LedgerEntry, now: number): LedgerEntry {
  return { record, state: stateAt(state, now) }
}

/** @throws CountersignError `invalid-option` */
export function positive(option: string, value: number): number {
  if (Number.isSafeInteger(value) && value > 0) return value
  const message = `${option} must be a positive integer, not ${value}.`
  throw new CountersignError('invalid-option', message, { option, value })
}
