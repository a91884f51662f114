import { CountersignError } from '../errors.js'
import { isTerminal } from '../messages.js'
import { isRecord, omitUndefined } from '../value.js'
import { isAsked } from './asked.js'
import { callAskedBy } from './calls.js'
import { touch } from './changes.js'
import { isMessage, repeatOf } from './check-messages.js'
import type { CallDraft, FinishedRun, InterruptDraft } from './data.js'
import { retainMessages } from './drafts.js'
import { isUnseen } from './interrupts.js'
import { loadMessages, settleLoaded } from './load.js'
import type { ThreadRecord } from './local-event.js'
import { readMessages } from './read.js'
import type { ChatState, MoreSteps } from './state.js'

export function readRecord(state: ChatState): ThreadRecord {
  // Loaded again, an open run is one that broke: what went with it may not have arrived.
  const carried = state.run.phase === 'idle' ? [] : state.run.carried
  const inDoubt = new Set([...carried, ...state.unsent])
  return {
    version: 1,
    messages: readMessages(state),
    unsentOutputs: [...inDoubt].flatMap((item) =>
      item.kind === 'call' && item.outputSent !== undefined ? [item.id] : [],
    ),
    interrupted: interruptedCalls(state),
    ready: [...state.open].flatMap(({ id, ready }) => (ready ? [{ id, input: ready.input }] : [])),
    interrupts: [...state.interrupts.values()]
      .filter((draft) => draft.liveIn === undefined || isUnseen(draft))
      .map(({ kind: _, liveIn: __, ...draft }) => draft),
    queue: state.queue,
    ...(state.run.phase === 'idle' && state.run.last && { run: state.run.last }),
    ...openRun(state),
    ...unfinished(state),
    ...(state.shared !== undefined && { state: state.shared }),
  }
}

/** The run that goes on, or may do so without this page. */
function openRun({ run }: ChatState): Pick<ThreadRecord, 'openRun' | 'openRunFrom'> {
  const runId = run.phase === 'idle' ? run.brokenOff : run.runId
  return runId ? omitUndefined({ openRun: runId, openRunFrom: run.from }) : {}
}

/** Calls that the turn does not wait for. Those of an open run will be, as nobody reads the rest of it. */
function interruptedCalls({ open, run }: ChatState): NonNullable<ThreadRecord['interrupted']> {
  const isBroken = run.phase !== 'idle' || run.brokenOff
  return [...open]
    .filter((call) => call.state === 'input-complete' && (isBroken || call.interrupted))
    .map(({ owner, index }) => [owner.position, index])
}

/** What a later page needs to know of a run that has no complete answer: its error, and where its messages begin. */
function unfinished(state: ChatState): Pick<ThreadRecord, 'from' | 'error'> {
  const { run, error } = state
  if (run.phase !== 'idle') return isUnanswered(state) ? { from: run.from } : {}
  if (!run.from || !error) return {}
  const { code, message, data } = error
  // What tells a request that was refused from one that may be repeated.
  const kept = omitUndefined({ status: data.status, code: data.code })
  return { from: run.from, error: { code, message, ...(Object.keys(kept).length > 0 && { data: kept }) } }
}

/**
 * Whether a reload now would cut off an answer without any other sign of it. An open request is such a sign, and so is what goes out again:
 * answers, and outputs of client tools.
 */
function isUnanswered(state: ChatState): boolean {
  const { run, order, asked, unsent, executing, interrupts, turn } = state
  if (run.phase === 'idle') return false
  if (run.phase === 'submitted') return !someGoAgain(run.carried)
  if (order.at(-1)?.streaming === true) return true
  const isAsked = interrupts.size > 0 || asked.some(({ owner }) => owner.turn === turn)
  return !isAsked && executing.size === 0 && !someGoAgain(unsent) && !someGoAgain(run.carried)
}

/** Whether anything of it is offered again where the run broke. That a request was cancelled goes along unseen. */
function someGoAgain(items: Iterable<CallDraft | InterruptDraft>): boolean {
  return [...items].some(
    (item) => item.kind === 'interrupt' || item.outputSent !== undefined || !isTerminal(item.state),
  )
}

/** Whether a stored value has the form of a record. What a message holds is as trustworthy as where it was stored. */
export function isThreadRecord(value: unknown): value is ThreadRecord {
  if (!isRecord(value) || value.version !== 1) return false
  const { messages, unsentOutputs, interrupted = [], ready, interrupts, queue, run, from, error } = value
  const { openRun = '', openRunFrom } = value
  if (typeof openRun !== 'string') return false
  if (![from, openRunFrom].every(isEnd)) return false
  if (error !== undefined && !(isRecord(error) && areIds([error.code, error.message]))) return false
  if (error?.data !== undefined && !isRecord(error.data)) return false
  if (!Array.isArray(interrupted)) return false
  if (!Array.isArray(ready) || !ready.every((item) => isRecord(item) && typeof item.id === 'string'))
    return false
  if (!Array.isArray(interrupts) || !interrupts.every(isKeptInterrupt)) return false
  if (!areIds(unsentOutputs)) return false
  if (run !== undefined && !(isRecord(run) && areIds(run.pendingToolCallIds ?? []))) return false
  if (!Array.isArray(queue) || !queue.every((item) => isRecord(item) && isMessage(item.message))) return false
  return Array.isArray(messages) && messages.every(isMessage) && !repeatOf(messages)
}

function isEnd(value: unknown): boolean {
  return value === undefined || (Array.isArray(value) && value.every(Number.isInteger))
}

function isKeptInterrupt(item: unknown): boolean {
  return isRecord(item) && isRecord(item.interrupt) && typeof item.interrupt.id === 'string'
}

function areIds(value: unknown): boolean {
  return Array.isArray(value) && value.every((id) => typeof id === 'string')
}

/** The step that takes a record over in the place of what is there. Nothing runs and nothing is sent because of it. */
export const restoreSteps = {
  restore(state, { record }) {
    retainMessages(state, () => false)
    state.unsent.clear()
    const { run, from, error = cutOff } = record
    if (state.run.phase === 'idle') state.run = omitUndefined({ phase: 'idle' as const, last: run, from })
    state.error = from && new CountersignError(error.code, error.message, error.data)
    const idle = record.interrupted && ('none' as const)
    const atSave = record.openRun === undefined ? idle : 'open'
    loadMessages(state, record.messages, (part) => settleLoaded(part, atSave))
    const outputs = [...record.unsentOutputs]
    const ready = [...record.ready]
    const interrupted = record.interrupted && new Set(record.interrupted.map(String))
    // Ids may repeat: the latest calls are those that are not done with.
    for (const call of state.order.flatMap(({ parts }) => parts).reverse()) {
      if (call.kind !== 'call') continue
      const place = String([call.owner.position, call.index])
      call.interrupted =
        call.state === 'input-complete' && (interrupted?.has(place) ?? !isLeftToClient(call, run))
      if (call.interrupted) touch(state, call)
      if (isTerminal(call.state)) {
        if (takeOne(outputs, (id) => id === call.id) === undefined) continue
        call.outputSent = false
        state.unsent.add(call)
      } else {
        const handedOut = takeOne(ready, ({ id }) => id === call.id)
        call.ready = handedOut && { input: handedOut.input }
      }
    }
    state.interrupts.clear()
    for (const kept of record.interrupts) {
      // A cancellation that did not arrive is void where its request is shown again.
      const holder = callAskedBy(state, kept.interrupt.id)
      if (holder && isAsked(holder)) continue
      const draft: InterruptDraft = { kind: 'interrupt', ...kept }
      state.interrupts.set(draft.interrupt.id, draft)
      if (draft.response) state.unsent.add(draft)
    }
    state.queue = record.queue
    if (record.state !== undefined) state.shared = record.state
    state.pendingNotification = 'change'
    return undefined
  },
} satisfies MoreSteps

const cutOff: NonNullable<ThreadRecord['error']> = {
  code: 'truncated-stream',
  message: 'The reply was cut off before it was complete. Retry.',
}

function takeOne<T>(items: T[], fits: (item: T) => boolean): T | undefined {
  const at = items.findLastIndex(fits)
  return at < 0 ? undefined : items.splice(at, 1)[0]
}

/** For a record that does not list interrupted calls: whether the last run left the call to the client; what it did not is a call of the server whose result will not come any more. */
function isLeftToClient(call: CallDraft, run: FinishedRun | undefined): boolean {
  return run !== undefined && (run.pendingToolCallIds?.includes(call.id) ?? true)
}
