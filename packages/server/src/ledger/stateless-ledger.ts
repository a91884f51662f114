import { CountersignError } from '@countersign/core'
import { checkOptions, flag, text } from '../encoding/check-options.js'
import type { Ledger } from './ledger.js'

export interface StatelessLedgerOptions {
  /** Accepts that anybody who has an answered request can repeat its answer until it expires, and that the call then runs again. */
  readonly acceptReplay: true
  /** Bound into tokens; must be the same in every process that is to accept them. Default `stateless`. */
  readonly id?: string | undefined
}

/**
 * A ledger that keeps nothing. Only tokens decide: an answer is fully verified, but **it can be replayed until the request
 * expires**, contradicting answers are not detected, and there are no session grants and no audit trail. Only for tools that may run twice.
 *
 * @throws CountersignError `invalid-option` without the literal `acceptReplay: true`, or if `id` is not text.
 */
export function statelessLedger(options: StatelessLedgerOptions): Ledger {
  if (options?.acceptReplay !== true) {
    throw new CountersignError(
      'invalid-option',
      'statelessLedger keeps no record of what was answered, so an answer can be replayed until it expires. ' +
        'Write acceptReplay: true to accept that, or use memoryLedger() or another ledger that remembers.',
      { option: 'acceptReplay' },
    )
  }
  checkOptions('statelessLedger', options, { acceptReplay: flag, id: text })
  return {
    id: options.id ?? 'stateless',
    durable: true,
    issue: async () => ({ status: 'issued' }),
    lookup: async () => undefined,
    unsettled: async () => [],
    claim: async () => ({ status: 'claimed', revision: 0 }),
    renew: async () => ({ status: 'renewed' }),
    complete: async () => ({ status: 'recorded', late: false }),
    reclaim: async () => ({ status: 'refused' }),
    grant: async () => ({ status: 'unsupported' }),
    findGrant: async () => undefined,
    revoke: async () => 0,
    list: async () => [],
    audit: async () => {},
    async *auditTrail() {},
  }
}
