import type { ToolCallApproval } from '../messages.js'
import type { Interrupt } from '../protocol/events.js'
import { asString, getCountersignMetadata, isRecord, omitUndefined } from '../value.js'
import type { InterruptDraft } from './data.js'
import type { Outcome } from './effects.js'
import type { ChatState } from './state.js'
import { subagentMetadata } from './subagents.js'

/** Questions that concern no tool call: how they are asked, answered and closed. */

/** How many questions may be open at once. Nobody answers as many, and all are shown anew with each that comes. */
const MOST_OPEN = 1000

/** Answers one; the first answer wins here too. */
export function setResponse(
  state: ChatState,
  draft: InterruptDraft | undefined,
  response: NonNullable<InterruptDraft['response']>,
): void {
  if (!draft || draft.response) return
  draft.response = response
  draft.problem = undefined
  state.unsent.add(draft)
  state.pendingNotification = 'change'
}

/** Nobody got the response, and it would be refused again: another one is wanted. */
export function reopenInterrupt(state: ChatState, draft: InterruptDraft, problem: string): void {
  Object.assign(draft, { response: undefined, sent: false, problem })
  state.unsent.delete(draft)
  state.pendingNotification = 'change'
}

/** The call that a question is about is gone: the server is told that nobody will answer. */
export function withdraw(state: ChatState, { id, token }: ToolCallApproval): void {
  const metadata = token === undefined ? undefined : { countersign: { resume: { countersign: { token } } } }
  put(state, { interrupt: omitUndefined({ id, reason: 'tool_call', metadata }), liveIn: undefined })
  setResponse(state, state.interrupts.get(id), { cancel: true })
}

/** An interrupt of a run that has ended. One that was answered and is asked again wants another answer. */
export function askInterrupt(state: ChatState, interrupt: Interrupt): void {
  const draft = state.interrupts.get(interrupt.id)
  if (!draft || draft.sent) put(state, { interrupt, liveIn: undefined })
}

/**
 * `CUSTOM interrupt-requested`: an interrupt while its run is open, which takes the answer itself. The same id once more says that the
 * answer did not fit (`metadata.countersign.problem`), and asks again.
 */
export function askLiveInterrupt(state: ChatState, value: unknown): Outcome {
  const interrupt = readInterrupt(value)
  if (!interrupt) return 'malformed-value'
  if (state.run.phase === 'idle') return 'illegal-step'
  const { id } = interrupt
  const before = state.interrupts.get(id)
  if (before && before.liveIn === undefined) return 'illegal-step'
  const problem = asString(getCountersignMetadata(interrupt.metadata).problem)
  if (!before && state.interrupts.size >= MOST_OPEN) return 'illegal-step'
  if (before && (problem === undefined || !before.response)) return undefined
  if (before) before.problem = problem
  put(state, { interrupt, liveIn: state.run.runId })
  return undefined
}

/** `CUSTOM interrupt-closed`: nobody waits for the answer any more, or it has been taken. */
export function closeLiveInterrupt(state: ChatState, value: unknown): Outcome {
  const draft = state.interrupts.get(asString(isRecord(value) ? value.id : undefined) ?? '')
  if (draft?.liveIn === undefined) return 'unknown-id'
  drop(state, draft)
  return undefined
}

/** The run that asked is over, and its questions with it. */
export function closeLiveInterrupts(state: ChatState): void {
  for (const draft of state.interrupts.values()) if (draft.liveIn !== undefined) drop(state, draft)
}

function put(state: ChatState, question: Pick<InterruptDraft, 'interrupt' | 'liveIn'>): void {
  const { id } = question.interrupt
  const before = state.interrupts.get(id)
  if (before) state.unsent.delete(before)
  const interrupt = attributed(state, question.interrupt)
  state.interrupts.set(id, { kind: 'interrupt', response: undefined, sent: false, ...question, interrupt })
  state.pendingNotification = 'change'
}

/** Who asks, by name, as on what a subagent says. */
function attributed(state: ChatState, interrupt: Interrupt): Interrupt {
  const asker = subagentMetadata(state, interrupt)
  return asker ? { ...interrupt, metadata: { ...interrupt.metadata, ...asker } } : interrupt
}

function drop(state: ChatState, draft: InterruptDraft): void {
  state.interrupts.delete(draft.interrupt.id)
  state.unsent.delete(draft)
  state.pendingNotification = 'change'
}

/** No stream check reads the value of a CUSTOM event, so it is read here. */
function readInterrupt(value: unknown): Interrupt | undefined {
  if (!isRecord(value)) return undefined
  const { id, reason, message, responseSchema, expiresAt, metadata, subagentRunId } = value
  if (typeof id !== 'string' || typeof reason !== 'string') return undefined
  return omitUndefined({
    id,
    reason,
    message: asString(message),
    responseSchema: isRecord(responseSchema) ? responseSchema : undefined,
    expiresAt: asString(expiresAt),
    metadata: isRecord(metadata) ? metadata : undefined,
    subagentRunId: asString(subagentRunId),
  })
}
