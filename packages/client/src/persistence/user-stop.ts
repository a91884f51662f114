import type { Step } from './persistence.js'

/** What the user's last `stop()` means for what comes after it. */
export interface UserStop {
  /** They have not acted since: what is queued is held. */
  readonly holdsQueue: boolean
  /** The last message of the run that it ended, until the next run: they know that the reply is incomplete. */
  readonly at?: string | undefined
}

/** Commands after which the queue stays held. */
const releasesNothing = /^(cancelQueued|expire|withdraw|setState|clearError|setMessages)$/

export function afterCommand(stop: UserStop, name: string): UserStop {
  return releasesNothing.test(name) ? stop : { ...stop, holdsQueue: name === 'stop' }
}

/** `last`: the last message when the page's own run was open. */
export function afterStep(stop: UserStop, step: Step, last: string | undefined): UserStop {
  if (step.type === 'run-opened' || step.type === 'run-rejoined') return { ...stop, at: undefined }
  const isEnd = step.type === 'run-closed' && step.end.type === 'aborted' && last !== undefined
  return isEnd ? { ...stop, at: last } : stop
}
