import type { ChatSnapshot, PendingApproval, ToolMap } from '@countersign/core'
import type { ChatClient } from './client.js'

/** What is asked of the person, one at a time. The same object until something in it changes. */
export interface ApprovalQueueSnapshot<Tools extends ToolMap = ToolMap> {
  /** The request to show: the oldest that was not dismissed, unless `next` or `reopen` chose another. */
  readonly current: PendingApproval<Tools> | undefined
  /** How many requests wait for an answer, dismissed ones included. */
  readonly count: number
  /** The place of the current one among them, from 1; 0 where there is none. */
  readonly position: number
  /** Those that wait and were dismissed, in order. */
  readonly dismissed: readonly PendingApproval<Tools>[]
}

/**
 * The requests of one chat in the order they were asked, for a page that shows one at a time. It holds no requests: they are those of the
 * messages, so that after a reload, an answer in another tab or a repeated event it shows what is. All it keeps is what was dismissed.
 */
export interface ApprovalQueue<Tools extends ToolMap = ToolMap> {
  /** Calls `listener` when the snapshot is another; returns how to leave. */
  readonly subscribe: (listener: () => void) => () => void
  readonly getSnapshot: () => ApprovalQueueSnapshot<Tools>
  /** For the server, and for the page that hydrates what it rendered: nothing is dismissed. */
  readonly getServerSnapshot: () => ApprovalQueueSnapshot<Tools>
  /** Shows the one after the current, and after the last the first. Dismissed ones are left out. */
  readonly next: () => void
  /** Sets a request (default: the current one) aside. It is not denied: it goes on waiting and can be reopened. */
  readonly dismiss: (approvalId?: string) => void
  /** Takes a dismissed request up again and shows it; without an id all of them, and shows the first. */
  readonly reopen: (approvalId?: string) => void
}

/** Pages that ask for the queue of the same client get the same one, and so share what was dismissed. */
const queues = new WeakMap<object, unknown>()

/** The requests for approval of a chat, one at a time. Always the same queue for the same client; it holds nothing but memory. */
export function approvalQueue<Tools extends ToolMap = ToolMap>(
  client: ChatClient<Tools>,
): ApprovalQueue<Tools> {
  const known = queues.get(client) ?? createQueue(client)
  queues.set(client, known)
  return known as ApprovalQueue<Tools>
}

/** What the person did with the requests beside answering them. */
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
    // What does not wait any more is forgotten.
    const waiting = new Set(client.getSnapshot().pendingApprovals.map(idOf))
    const { dismissed, shown } = { ...choice, ...change }
    choice = { dismissed: new Set([...dismissed].filter((id) => waiting.has(id))), shown }
    for (const listener of [...listeners]) listener()
  }

  return {
    getSnapshot,
    getServerSnapshot: () => readOnServer(nothing),
    subscribe(listener) {
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

/** Reads the queue of a chat, anew only when its requests or the choice have changed. */
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
