import { isTerminal } from '../messages.js'
import type { ResumeEntry } from '../protocol/events.js'
import { getCountersignMetadata, isRecord, omitUndefined } from '../value.js'
import { isForNow } from './approval-refusal.js'
import type { CallDraft, InterruptDraft } from './data.js'
import type { ChatState } from './state.js'

/** Whether an approval answer, a client tool's output or a response to an interrupt is unsent and may be sent automatically. */
export function hasUnsentAnswer(state: ChatState): boolean {
  return [...state.unsent].some(isDue)
}

function isDue(item: CallDraft | InterruptDraft): boolean {
  if (item.kind === 'interrupt') return !item.sent
  const { approved, delivery, problem } = item.approval ?? {}
  return item.outputSent === false || (approved !== undefined && delivery === 'waiting' && !problem)
}

/** Whether there is an answer that `retry` can send again: refused only for now, or lost on the way. */
export function hasDeferredAnswer(state: ChatState): boolean {
  return [...state.unsent].some((item) =>
    item.kind === 'call'
      ? item.approval?.delivery === 'unknown' || isForNow(item.approval?.problem)
      : item.sent,
  )
}

/**
 * Whether every call of the current turn is answered or finished, and every open interrupt is answered. A request that can't be
 * answered holds up no other answer.
 */
export function areAllToolsComplete(state: ChatState): boolean {
  // Checks the pending calls first: most of many calls may already be answered.
  for (const call of state.asked) if (call.owner.turn === state.turn && !call.approval?.problem) return false
  for (const interrupt of state.interrupts.values()) if (!interrupt.response) return false
  const answered = callsAskedFor(state)
  for (const call of state.open)
    if ((call.ready || call.owner.turn === state.turn) && !answered.has(call.id) && blocks(call)) return false
  return true
}

/** Calls with an interrupt that is no approval request: they continue on the server, with the response. */
function callsAskedFor({ interrupts }: ChatState): ReadonlySet<string | undefined> {
  return new Set([...interrupts.values()].map(({ interrupt }) => interrupt.toolCallId))
}

/** Whether a call without an outcome holds up the turn, apart from its approval request. */
function blocks({ state, providerExecuted, interrupted, ready }: CallDraft): boolean {
  if (state === 'input-complete') return !providerExecuted && !interrupted
  return ready !== undefined || (state !== 'approval-requested' && state !== 'approval-responded')
}

/**
 * Calls that this client must run: those that the server handed back (also of an earlier turn), and those that the finished run named
 * or, if it named none, left without a result.
 */
export function clientCalls(state: ChatState): readonly { id: string; name: string; input: unknown }[] {
  const finished = state.run.phase === 'idle' ? state.run.last : state.run.finish
  if (finished?.outcome === 'cancelled') return []
  const named = finished?.pendingToolCallIds && new Set(finished.pendingToolCallIds)
  const servers = callsAskedFor(state)
  return [...state.open].flatMap(
    ({ id, name, input, state: reached, owner, ready, interrupted, providerExecuted }) => {
      // A call of a broken run is left to this client only if a later run names it.
      const isNamed = named?.has(id)
      if ((interrupted && !isNamed) || providerExecuted) return []
      if (ready && reached === 'approval-responded') return [{ id, name, input: ready.input }]
      const isLeft = reached === 'input-complete' && (isNamed ?? !servers.has(id))
      return finished && isLeft && owner.turn === state.turn ? [{ id, name, input }] : []
    },
  )
}

/**
 * The answers to send with the next request, whose run is `runId`. Answers with unknown delivery are included
 * only if the user asked for it (`again`); otherwise they travel in the history, where the server finds them too.
 */
export function resumeEntries(state: ChatState, again: boolean, runId?: string): ResumeEntry[] {
  return [...state.unsent].flatMap((item) =>
    item.kind === 'interrupt' ? interruptEntry(item, again) : approvalEntry(item, again, runId),
  )
}

/** AG-UI: the metadata of an entry is what the server wants back, as its interrupt specifies (`metadata.countersign.resume`). */
function interruptEntry({ interrupt, response, sent }: InterruptDraft, again: boolean): ResumeEntry[] {
  if (!response || (sent && !again)) return []
  const { id: interruptId, metadata } = interrupt
  const { resume } = getCountersignMetadata(metadata)
  const more = isRecord(resume) ? { metadata: resume } : {}
  return 'cancel' in response
    ? [{ interruptId, status: 'cancelled', ...more }]
    : [{ interruptId, status: 'resolved', payload: response.payload, ...more }]
}

function approvalEntry({ approval, state }: CallDraft, again: boolean, runId?: string): ResumeEntry[] {
  const {
    id = '',
    token,
    approved,
    reason,
    scope,
    mandate,
    mandates,
    input,
    edited,
    preview,
    delivery,
    sentIn,
  } = approval ?? {}
  if (delivery !== 'waiting' && !(again && delivery === 'unknown')) return []
  const isAnswer = approved !== undefined
  // What the user saw when approving it, or choosing a mandate: the server compares it with what it sent.
  const offered = mandates?.find((one) => one.id === mandate)
  const seen = approved || offered ? { sentIn: sentIn ?? runId, offered, ...(edited ?? { preview }) } : {}
  const own = { token, ...seen }
  const metadata = token === undefined ? undefined : { countersign: omitUndefined(own) }
  if (isAnswer ? isTerminal(state) : state !== 'cancelled') return []
  const status = isAnswer ? ('resolved' as const) : ('cancelled' as const)
  const payload = isAnswer
    ? omitUndefined({ approved, reason, editedArgs: input, scope, mandate })
    : undefined
  return [omitUndefined({ interruptId: id, metadata, status, payload })]
}

/** Client tools that are running. */
export function executingCalls({ executing }: ChatState): readonly CallDraft[] {
  return [...executing]
}
