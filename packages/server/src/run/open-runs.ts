import { type AGUIEvent, CountersignError } from '@countersign/core'
import { type Ledger, ledgerKey } from '../ledger/ledger.js'
import type { Channel } from '../scope/channel.js'
import type { RunScope } from '../scope/scope.js'

type RunName = Pick<RunScope, 'owner' | 'threadId' | 'runId'>

/** By ledger: agents created per request share one, and so know each other's runs. */
const open = new WeakMap<Ledger, Set<string>>()

export function isRunOpen(ledger: Ledger, { owner, threadId, runId }: RunName): boolean {
  return open.get(ledger)?.has(ledgerKey(owner, threadId, runId)) ?? false
}

/** The time during which a run is open: from its start until it has ended and its end was read, or its reader has gone. */
interface Opening {
  /** Returns whether the run may start: the same run is not open yet. */
  start(): boolean
  end(): void
  /** Aborts when its reader has asked for more than there is, so that it has handled all of it, or has gone. */
  readonly left: AbortSignal
  /** The events of the run, observed as they are read. */
  read(events: Channel<AGUIEvent>): Channel<AGUIEvent>
}

export function openingOf(ledger: Ledger, name: RunName): Opening {
  const key = ledgerKey(name.owner, name.threadId, name.runId)
  let isOurs = false
  let hasEnded = false
  let isRead = false
  const close = () => {
    if (isOurs && hasEnded && isRead) open.get(ledger)?.delete(key)
  }
  const wasRead = () => {
    isRead = true
    close()
  }
  const left = new AbortController()
  const leave = () => {
    wasRead()
    left.abort()
  }
  return {
    left: left.signal,
    start() {
      if (isRunOpen(ledger, name)) return false
      isOurs = true
      open.set(ledger, (open.get(ledger) ?? new Set()).add(key))
      return true
    },
    end() {
      hasEnded = true
      close()
    },
    read: (events) => ({
      next() {
        const reading = events.next()
        reading.then(({ done, value }) => {
          if (done) leave()
          else if (isEnd(value)) wasRead()
        }, leave)
        return reading
      },
      waiting() {
        const taken = events.waiting()
        if (taken.some(isEnd)) wasRead()
        return taken
      },
      async return() {
        leave()
        return (await events.return?.()) ?? { done: true, value: undefined }
      },
      [Symbol.asyncIterator]() {
        return this
      },
    }),
  }
}

/** Once it is read, the run's id may be used again at once. */
function isEnd({ type }: AGUIEvent): boolean {
  return type === 'RUN_FINISHED' || type === 'RUN_ERROR'
}

export function runIsOpen({ runId }: RunName): CountersignError {
  const message =
    'A run with this id is open already, and was not started a second time. Rejoin it, or send the request with another runId.'
  return new CountersignError('run-open', message, { status: 409, runId })
}
