import type { ChatSnapshot, PendingApproval, ToolMap } from '@countersign/core'
import { called } from './call-back.js'
import type { ChatClient } from './client.js'

/** One approval request at a time. The same object until something in it changes. */
export interface ApprovalQueueSnapshot<Tools extends ToolMap = ToolMap> {
  /** The request to show: the oldest one not dismissed, unless `next` or `reopen` chose another. */
  readonly current: PendingApproval<Tools> | undefined
  /** The number of pending requests, including dismissed ones. */
  readonly count: number
  /** The position of the current one among them, from 1; 0 if there is none. */
  readonly position: number
  /** The pending requests that were dismissed, in order. */
  readonly dismissed: readonly PendingApproval<Tools>[]
}

/**
 * The approval requests of one chat in order, for a page that shows one at a time. It stores no requests but reads them from the
 * messages, so it is correct after a reload, an answer in another tab or a repeated event. It stores only which ones were dismissed.
 */
export interface ApprovalQueue<Tools extends ToolMap = ToolMap> {
  /** Calls `listener` when the snapshot changes; returns a function that unsubscribes. */
  readonly subscribe: (listener: () => void) => () => void
  readonly getSnapshot: () => ApprovalQueueSnapshot<Tools>
  /** For server rendering and hydration: nothing is dismissed. */
  readonly getServerSnapshot: () => ApprovalQueueSnapshot<Tools>
  /** Shows the next request; after the last one, the first. Skips dismissed ones. */
  readonly next: () => void
  /** Sets a request (default: the current one) aside without denying it. It stays pending and can be reopened. */
  readonly dismiss: (approvalId?: string) => void
  /** Reopens a dismissed request and shows it; without an id, reopens all and shows the first. */
  readonly reopen: (approvalId?: string) => void
}

/** Callers that ask for the queue of the same client share it, and so share what was dismissed. */
const queues = new WeakMap<object, unknown>()

/** The approval requests of a chat, one at a time. Always the same queue for the same client; needs no cleanup. */
export function approvalQueue<Tools extends ToolMap = ToolMap>(
  client: ChatClient<Tools>,
): ApprovalQueue<Tools> {
  const known = queues.get(client) ?? createQueue(client)
  queues.set(client, known)
  return known as ApprovalQueue<Tools>
}

/** What the user did with the requests apart from answering them. */
interface Choice {
  readonly dismissed: ReadonlySet<string>
  readonly shown: string | undefined
}

const nothing: Choice = { dismissed: new Set(), shown: undefined }

function createQueue<Tools extends ToolMap>(client: ChatClient<Tools>): ApprovalQueue<Tools> {
  const listeners = new Set<() => void>()
  const readOnServer = createReader<Tools>(client.getServerSnapshot)
  const read = createReader<Tools>(client.getSnapshot)
  let choice = nothing
  const getSnapshot = () => read(choice)

  function choose(change: Partial<Choice>): void {
    // Drops requests that are no longer pending.
    const waiting = new Set(client.getSnapshot().pendingApprovals.map(idOf))
    const { dismissed, shown } = { ...choice, ...change }
    choice = { dismissed: new Set([...dismissed].filter((id) => waiting.has(id))), shown }
    for (const listener of [...listeners]) listener()
  }

  return {
    getSnapshot,
    getServerSnapshot: () => readOnServer(nothing),
    subscribe(listener) {
      called(listener)
      let last = getSnapshot()
      const check = () => {
        const now = getSnapshot()
        if (now === last) return
        last = now
        listener()
      }
      listeners.add(check)
      const leave = client.subscribe(check)
      return () => {
        listeners.delete(check)
        leave()
      }
    },
    next() {
      const { current } = getSnapshot()
      const open = client.getSnapshot().pendingApprovals.filter((part) => !choice.dismissed.has(idOf(part)))
      const after = open[current ? open.indexOf(current) + 1 : 0] ?? open[0]
      choose({ shown: after && idOf(after) })
    },
    dismiss(approvalId) {
      const { current } = getSnapshot()
      const id = approvalId ?? (current && idOf(current))
      if (id !== undefined) choose({ dismissed: new Set([...choice.dismissed, id]) })
    },
    reopen(approvalId) {
      const dismissed = new Set(choice.dismissed)
      if (approvalId === undefined) dismissed.clear()
      else dismissed.delete(approvalId)
      choose({ dismissed, shown: approvalId })
    },
  }
}

/** Reads the queue of a chat; recomputed only when its requests or the choice have changed. */
function createReader<Tools extends ToolMap>(getSnapshot: () => ChatSnapshot<Tools>) {
  let last:
    | { pending: readonly PendingApproval<Tools>[]; choice: Choice; value: ApprovalQueueSnapshot<Tools> }
    | undefined
  return (choice: Choice): ApprovalQueueSnapshot<Tools> => {
    const pending = getSnapshot().pendingApprovals
    if (last?.pending === pending && last.choice === choice) return last.value
    const value = readQueue(pending, choice)
    last = { pending, choice, value: last && isSame(last.value, value) ? last.value : value }
    return last.value
  }
}

function readQueue<Tools extends ToolMap>(
  pending: readonly PendingApproval<Tools>[],
  choice: Choice,
): ApprovalQueueSnapshot<Tools> {
  const dismissed = pending.filter((part) => choice.dismissed.has(idOf(part)))
  const open = pending.filter((part) => !choice.dismissed.has(idOf(part)))
  const current = open.find((part) => idOf(part) === choice.shown) ?? open[0]
  return { current, count: pending.length, position: current ? pending.indexOf(current) + 1 : 0, dismissed }
}

function isSame<Tools extends ToolMap>(
  a: ApprovalQueueSnapshot<Tools>,
  b: ApprovalQueueSnapshot<Tools>,
): boolean {
  return (
    a.current === b.current &&
    a.count === b.count &&
    a.position === b.position &&
    a.dismissed.length === b.dismissed.length &&
    a.dismissed.every((part, at) => part === b.dismissed[at])
  )
}

function idOf({ approval }: PendingApproval): string {
  return approval.id
}
