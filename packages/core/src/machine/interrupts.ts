import type { ToolCallApproval } from '../messages.js'
import type { Interrupt } from '../protocol/events.js'
import { asString, getCountersignMetadata, isRecord, omitUndefined, sameJson } from '../value.js'
import { takeRequestId } from './calls.js'
import type { InterruptDraft } from './data.js'
import type { Outcome } from './effects.js'
import type { AskedApproval } from './read-approval.js'
import type { ChatState } from './state.js'
import { subagentMetadata } from './subagents.js'

/** With this many interrupts open, further live ones are rejected: nobody answers so many, and each one republishes the whole list. */
const MOST_OPEN = 1000

/** Sets the response to an interrupt. The first one wins. */
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

/** The response was not received and would be refused again, so another one is needed. */
export function reopenInterrupt(state: ChatState, draft: InterruptDraft, problem: string): void {
  Object.assign(draft, { response: undefined, sent: false, problem })
  state.unsent.delete(draft)
  state.pendingNotification = 'change'
}

/** The call of an approval request was removed: tells the server that nobody will answer. */
export function withdraw(state: ChatState, { id, token }: ToolCallApproval): void {
  const metadata = backWith(token)
  put(state, { interrupt: omitUndefined({ id, reason: 'tool_call', metadata }), liveIn: undefined })
  setResponse(state, state.interrupts.get(id), { cancel: true })
}

/**
 * An interrupt of a finished run. If it was answered and is raised again, it needs another response; so does one whose id the server uses
 * again for something else. The response to the earlier one is then not sent.
 */
export function askInterrupt(state: ChatState, interrupt: Interrupt, liveIn?: string): Outcome {
  const draft = state.interrupts.get(interrupt.id)
  if (!takeRequestId(state, interrupt.id)) return 'illegal-step'
  const isReused = draft && !draft.sent && !isCancelled(draft) && !asksTheSame(draft.interrupt, interrupt)
  if (!draft || draft.sent || isReused) put(state, { interrupt, liveIn })
  else draft.liveIn = liveIn
  if (!isReused || !draft.response) return undefined
  const message = `The server uses the id of the interrupt "${interrupt.id}" for another one: the response to the earlier one is not sent.`
  return [{ type: 'warning', code: 'illegal-step', message }]
}

/**
 * A request for a call that is not here: the stretch of the stream that had it was lost. Nobody can approve what is not shown, so the schema
 * lets only a denial pass. While a run is open, that may wait for the answer.
 */
export function askUnseen(
  state: ChatState,
  { toolCallId, approval }: AskedApproval,
  isLive: boolean,
): Outcome {
  const { run } = state
  if (run.phase === 'idle') return 'unknown-id'
  const { id, expiresAt, token, message = 'A call that did not arrive here needs approval.' } = approval
  const metadata = backWith(token)
  const fields = { id, reason: 'tool_call', toolCallId, message, expiresAt, responseSchema: denial, metadata }
  const outcome = askInterrupt(state, omitUndefined(fields), isLive ? run.runId : undefined)
  if (outcome !== undefined) return outcome
  const warning = `The call "${toolCallId}" did not arrive here, so the request "${id}" is shown without it and can only be denied.`
  return [{ type: 'warning', code: 'unknown-id', message: warning }]
}

const denial = {
  type: 'object',
  properties: { approved: { const: false }, reason: { type: 'string' } },
  required: ['approved'],
}

/** Metadata of an interrupt whose answer returns the token. */
function backWith(token: string | undefined): Record<string, unknown> | undefined {
  return token === undefined ? undefined : { countersign: { resume: { countersign: { token } } } }
}

/** Whether it is a request for a call that is not here. It outlives its run, as the request for any other call does. */
export function isUnseen({ interrupt: { toolCallId } }: Pick<InterruptDraft, 'interrupt'>): boolean {
  return toolCallId !== undefined
}

function isCancelled({ response }: InterruptDraft): boolean {
  return response !== undefined && !('payload' in response)
}

function asksTheSame(one: Interrupt, other: Interrupt): boolean {
  const asked = ({ reason, message, responseSchema }: Interrupt) => [reason, message, responseSchema]
  return sameJson(asked(one), asked(other))
}

/**
 * `CUSTOM interrupt-requested`: an interrupt raised during a run, which also accepts the response. If the same
 * id comes again with `metadata.countersign.problem`, the response was not accepted and another is needed.
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

/** `CUSTOM interrupt-closed`: the response was accepted or is no longer needed. */
export function closeLiveInterrupt(state: ChatState, value: unknown): Outcome {
  const draft = state.interrupts.get(asString(isRecord(value) ? value.id : undefined) ?? '')
  if (draft?.liveIn === undefined) return 'unknown-id'
  dropInterrupt(state, draft)
  return undefined
}

/** Live interrupts end with their run. */
export function closeLiveInterrupts(state: ChatState): void {
  for (const draft of state.interrupts.values()) {
    if (isUnseen(draft)) draft.liveIn = undefined
    else if (draft.liveIn !== undefined) dropInterrupt(state, draft)
  }
}

function put(state: ChatState, question: Pick<InterruptDraft, 'interrupt' | 'liveIn'>): void {
  const { id } = question.interrupt
  const before = state.interrupts.get(id)
  if (before) state.unsent.delete(before)
  const interrupt = attributed(state, question.interrupt)
  state.interrupts.set(id, { kind: 'interrupt', response: undefined, sent: false, ...question, interrupt })
  state.pendingNotification = 'change'
}

/** Adds the subagent that raised the interrupt, with its name. */
function attributed(state: ChatState, interrupt: Interrupt): Interrupt {
  const asker = subagentMetadata(state, interrupt)
  return asker ? { ...interrupt, metadata: { ...interrupt.metadata, ...asker } } : interrupt
}

export function dropInterrupt(state: ChatState, draft: InterruptDraft | undefined): void {
  if (!draft) return
  state.interrupts.delete(draft.interrupt.id)
  state.unsent.delete(draft)
  state.pendingNotification = 'change'
}

/** Stream validation does not look into the value of a CUSTOM event. */
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
