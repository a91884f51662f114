import { CountersignError } from '@countersign/core'
import type { Grant } from '../ledger/grant.js'
import { audit } from '../scope/audit.js'
import type { AgentSettings } from '../scope/settings.js'
import { countRevocation } from './grants.js'

/**
 * The session grants, by user: what a settings page lists and revokes. Rejects with `ledger-unavailable` if the ledger can't be
 * reached.
 */
export interface SessionGrants {
  /** The grants that allow calls, in one thread or in all, oldest first. */
  list(subject: string, threadId?: string): Promise<readonly Grant[]>
  /**
   * Revokes one grant, all of a thread, or all. Once it resolves, no call that has not started starts by them, not even one that the gate has
   * let through already: it needs approval again. The one exception is a use that another process took before. Resolves with the number
   * revoked.
   */
  revoke(subject: string, which?: { readonly threadId?: string; readonly id?: string }): Promise<number>
}

export function sessionGrants(settings: AgentSettings): SessionGrants {
  const { epoch, ledger } = settings.approvals
  const reached = <Result>(work: Promise<Result>): Promise<Result> =>
    work.catch((error: unknown) => {
      settings.warn('The ledger could not be reached for session approvals.', error)
      const message = 'Session approvals can be neither read nor ended at the moment; try again.'
      throw new CountersignError('ledger-unavailable', message, { status: 503 }, error)
    })
  const list: SessionGrants['list'] = async (subject, threadId) => {
    const grants = await reached(ledger.list(subject, threadId))
    return grants.filter((grant) => grant.approved && grant.grantedAt >= epoch)
  }
  return {
    list,
    async revoke(subject, { threadId, id } = {}) {
      const ended = (await list(subject, threadId)).filter((grant) => id === undefined || grant.id === id)
      await reached(ledger.revoke({ owner: subject, threadId, id }))
      countRevocation(ledger)
      for (const grant of ended) {
        const scope = { settings, owner: subject, threadId: grant.threadId }
        await audit(scope, { event: 'revoked', toolName: grant.toolName })
      }
      return ended.length
    },
  }
}
