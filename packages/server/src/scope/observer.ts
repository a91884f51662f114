import { RunObserver } from '../observe/run-observer.js'
import { hashOwner } from '../tokens/token.js'
import type { RunScope } from './scope.js'

type Observed = Pick<RunScope, 'settings' | 'owner' | 'threadId' | 'runId'>

/** Reports a run to the application's observer, if it has one. */
export async function observerOf(scope: Observed): Promise<RunObserver | undefined> {
  const { settings, owner, threadId, runId } = scope
  const { observe, approvals, now, warn } = settings
  if (observe === undefined) return undefined
  try {
    const keys = await approvals.keyring.current()
    const ownerHash = await hashOwner(keys.owner, owner)
    return new RunObserver({ observe, run: { threadId, runId, ownerHash }, now, warn })
  } catch (error) {
    warn('A run is not observed.', error)
    return undefined
  }
}
