import type { ApprovalErrorCode } from '../errors.js'
import { type Delivery, isTerminal, type ToolCallApproval } from '../messages.js'
import type { Interrupt } from '../protocol/events.js'
import {
  asString,
  changed,
  frozen,
  getCountersignMetadata,
  isRecord,
  omitUndefined,
  oneOf,
  parseJson,
  sameJson,
} from '../value.js'
import type { CallDraft } from './data.js'
import { findCall, isReleased, moveCall, takeRepeat, touch } from './drafts.js'
import type { Outcome } from './effects.js'
import { setResponse } from './interrupts.js'
import type { ChatState, StepTable } from './state.js'

/** A request for approval as read from the wire: an event, an interrupt or a snapshot. */
interface AskedApproval {
  readonly toolCallId: string
  readonly toolName?: string | undefined
  /** Present where the source carries the arguments. */
  readonly input?: { readonly value: unknown } | undefined
  readonly approval: ToolCallApproval
}

/** The steps of a question to the person: its answer, and the answer's way. */
export const approvalSteps = {
  /** First answer wins: only an open request takes one, and one whose answer came to nothing. */
  answer(state, { approvalId, approved, reason, scope, input }) {
    const found = findAnswerable(state, approvalId)
    if (found.status === 'not-found') return 'unknown-id'
    if (found.status !== 'open') return undefined
    const { call } = found
    reopen(state, call)
    moveCall(state, call, 'approval-responded')
    // What was wrong with an earlier answer.
    call.error = undefined
    const given = {
      approved,
      delivery: 'waiting' as const,
      reason,
      scope: approved ? scope : undefined,
      input: approved ? input : undefined,
    }
    setApproval(state, call, omitUndefined(given))
    state.unsent.add(call)
    return undefined
  },
  'answer-sent': (state, { approvalId }) => moveAnswer(state, approvalId, true),
  'answer-returned': (state, { approvalId }) => moveAnswer(state, approvalId, false),
  close(state, { ids, because }) {
    const problem = because === 'expired' ? ('approval-expired' as const) : undefined
    const closed = new Set<CallDraft>()
    // From the end, since removing from the front of a long list is slow.
    for (let at = ids.length - 1; at >= 0; at--) {
      const call = state.approvals.get(ids[at] ?? '')
      if (call?.state === 'approval-requested' && moveCall(state, call, 'cancelled')) closed.add(call)
    }
    for (const id of ids) {
      setResponse(state, state.interrupts.get(id), { cancel: true })
      const call = state.approvals.get(id)
      if (!call || !closed.has(call)) continue
      setApproval(state, call, omitUndefined({ delivery: 'waiting' as const, problem }))
      state.unsent.add(call)
    }
    return undefined
  },
  respond(state, { interruptId, response }) {
    const draft = state.interrupts.get(interruptId)
    if (!draft) return 'unknown-id'
    setResponse(state, draft, response)
    return undefined
  },
} satisfies Partial<StepTable>

/** Live answers go with the run that is open: if it breaks, their fate is as unknown as that of the answers it began with. */
function moveAnswer(state: ChatState, approvalId: string, sent: boolean): undefined {
  const item = state.approvals.get(approvalId) ?? state.interrupts.get(approvalId)
  const isAnswered =
    item?.kind === 'interrupt'
      ? item.response
      : item?.state === 'approval-responded' && item.approval?.delivery !== 'settled'
  if (!item || !isAnswered) return
  const { run } = state
  if (run.phase !== 'idle') {
    const carried = run.carried.filter((other) => other !== item)
    state.run = changed(run, { carried: sent ? [...carried, item] : carried })
  }
  state.unsent[sent ? 'delete' : 'add'](item)
  if (item.kind === 'interrupt') item.sent = sent
  else if (!sent || run.phase === 'idle') setApproval(state, item, { delivery: sent ? 'sent' : 'waiting' })
  else
    setApproval(state, item, {
      delivery: 'sent',
      ...(item.approval?.approved && { sentIn: item.approval.sentIn ?? run.runId }),
    })
}

/** `CUSTOM approval-requested` (design: the server asks once its gate has decided, during the model's stream). */
export function readApprovalEvent(value: unknown): AskedApproval | undefined {
  const asked = isRecord(value) ? value : {}
  return readAsked(asString(asked.toolCallId), asked, asked.approval)
}

/**
 * An AG-UI interrupt that asks for a yes to a tool call. A server of another make tells less; the rest takes its defaults. One that wants
 * something else of the person is none, whatever call it belongs to.
 */
export function readApprovalInterrupt(interrupt: Interrupt): AskedApproval | undefined {
  if (!takesApproved(interrupt)) return undefined
  const own = getCountersignMetadata(interrupt.metadata)
  const more = isRecord(own.approval) ? own.approval : own
  return readAsked(interrupt.toolCallId, own, {
    id: interrupt.id,
    options: more.options,
    display: more.display,
    message: interrupt.message ?? more.message,
    expiresAt: interrupt.expiresAt ?? more.expiresAt,
    allowEdits: more.allowEdits ?? offersEdits(interrupt.responseSchema),
    token: own.token ?? more.token,
  })
}

/** AG-UI: `input_required` asks for input; and a response schema with properties, none of them `approved`, takes no yes. */
function takesApproved({ reason, responseSchema }: Interrupt): boolean {
  const properties = responseSchema?.properties
  return reason !== 'input_required' && (!isRecord(properties) || 'approved' in properties)
}

/** AG-UI: `editedArgs` in the response schema is how a server says that arguments may be edited. */
function offersEdits(schema: unknown): true | undefined {
  const properties = isRecord(schema) ? schema.properties : undefined
  return isRecord(properties) && 'editedArgs' in properties ? true : undefined
}

function readAsked(
  toolCallId: string | undefined,
  asked: Record<string, unknown>,
  question: unknown,
): AskedApproval | undefined {
  const approval = readApproval(question)
  if (toolCallId === undefined || !approval) return undefined
  const input = 'input' in asked ? { value: asked.input } : undefined
  return { toolCallId, toolName: asString(asked.toolName), input, approval }
}

/** Reads the question's side of an approval; an answer in it is not taken over: no stream says yes for the person. */
export function readApproval(value: unknown): ToolCallApproval | undefined {
  if (!isRecord(value) || typeof value.id !== 'string') return undefined
  const { id, options, allowEdits, message, expiresAt, display, token } = value
  const offered = Array.isArray(options) ? options.filter(isOption) : []
  return omitUndefined({
    id,
    needsApproval: true as const,
    options: offered.length > 0 ? offered : (['deny', 'once'] as const),
    allowEdits: Array.isArray(allowEdits)
      ? allowEdits.filter((key) => typeof key === 'string')
      : oneOf(allowEdits, true, false),
    message: asString(message),
    expiresAt: asString(expiresAt),
    display,
    token: asString(token),
  })
}

function isOption(value: unknown): value is ToolCallApproval['options'][number] {
  return value === 'deny' || value === 'once' || value === 'session'
}

/** Folds a request into its call. All ways of asking end here, so asking twice in two ways is one request. */
export function askApproval(
  state: ChatState,
  asked: AskedApproval,
  call = callAskedAbout(state, asked),
): Outcome {
  const { approval } = asked
  if (!call) return 'unknown-id'
  const holder = state.approvals.get(approval.id)
  if (holder !== call && !isReleased(holder, call)) return 'illegal-step'
  if (call.approval) return isRepeated(call, call.approval, asked) ? undefined : markChanged(state, call)
  if (!moveCall(state, call, 'approval-requested')) return 'illegal-step'
  // Of a call whose run broke the server speaks again.
  call.interrupted = false
  call.approval = frozen(call.token === undefined ? approval : changed(approval, { token: call.token }))
  // Read anew: a page may have changed what it was shown while the arguments came.
  call.input = frozen(parseJson(call.arguments, call.input))
  state.approvals.set(approval.id, call)
  // What was still to be said of an earlier question with that id would be taken for this one.
  if (holder) state.unsent.delete(holder)
  if (differs(call, asked)) return markChanged(state, call)
  const { input } = call
  const mayMeanAnother = (other: CallDraft) => isUnasked(other) && !sameJson(other.input, input)
  if (!asked.input && findCall(state, call.id, mayMeanAnother)) doubt(state, call)
  else clearDoubt(state, call)
  return [
    {
      type: 'approval-requested',
      messageId: call.owner.id,
      toolCallId: call.id,
      toolName: call.name,
      input: call.input,
      approval: call.approval,
    },
  ]
}

/**
 * The call that a question is about. Where several have its id: the one that has the question already, the first that has none and is what
 * the question says it is, else the last.
 */
function callAskedAbout(state: ChatState, asked: AskedApproval): CallDraft | undefined {
  const { toolCallId: id, approval } = asked
  const holder = state.approvals.get(approval.id)
  if (holder?.id === id && !isTerminal(holder.state)) return holder
  const latest = state.calls.get(id)
  const isMeant = (call: CallDraft) => isUnasked(call) && !differs(call, asked)
  return (
    findCall(state, id, isMeant, true) ??
    findCall(state, id, isUnasked) ??
    (holder?.id === id ? holder : undefined) ??
    (latest?.approval && takeRepeat(state, id)) ??
    latest
  )
}

function isUnasked({ state, approval, interrupted }: CallDraft): boolean {
  return state === 'input-complete' && !approval && !interrupted
}

/** A question that may be about a later call with the same id cannot be answered, until that one has a question or an outcome of its own. */
export function doubt(state: ChatState, call: CallDraft): Outcome {
  const { doubted } = call
  const outcome = markChanged(state, call)
  call.doubted = doubted || outcome !== undefined
  return outcome
}

export function clearDoubt(state: ChatState, { id }: CallDraft): void {
  for (;;) {
    const call = findCall(state, id, ({ doubted }) => doubted)
    if (!call?.approval) return
    call.doubted = false
    call.approval = withoutProblem(call.approval)
    touch(state, call)
  }
}

export function withoutProblem({ problem: _, ...approval }: ToolCallApproval): ToolCallApproval {
  return approval
}

/**
 * The same request a second time (event and interrupt, a reconnect). What the person was shown is frozen: a request that differs
 * cannot be answered any more, instead of being swapped under the person's hand.
 */
function isRepeated(call: CallDraft, before: ToolCallApproval, asked: AskedApproval): boolean {
  const after = asked.approval
  return (
    before.id === after.id &&
    (['message', 'expiresAt', 'token', 'display'] as const).every((name) =>
      agrees(before[name], after[name]),
    ) &&
    !differs(call, asked)
  )
}

/** A later source may tell less than an earlier one, but not something else. */
function agrees(before: unknown, after: unknown): boolean {
  return before === undefined || after === undefined || sameJson(before, after)
}

function differs(call: CallDraft, { toolName = call.name, input, approval }: AskedApproval): boolean {
  return (
    toolName !== call.name ||
    !agrees(call.token, approval.token) ||
    (input !== undefined && !sameJson(input.value, call.input))
  )
}

/** Makes a pending request unanswerable, because what it asks is no longer what was shown. */
function markChanged(state: ChatState, call: CallDraft): Outcome {
  call.doubted = false
  if (call.state !== 'approval-requested' || call.approval?.problem) return undefined
  setApproval(state, call, { problem: 'approval-changed' })
  const message = `The request for "${call.id}" changed after it was shown; it cannot be answered.`
  return [{ type: 'warning', code: 'illegal-step', message }]
}

export function setApproval(state: ChatState, call: CallDraft, change: Partial<ToolCallApproval>): void {
  if (!call.approval) return
  call.approval = changed(call.approval, change)
  touch(state, call)
}

/** The value, if it is one of the codes of a refused answer. */
export function readRefusal(value: unknown): ApprovalErrorCode | undefined {
  return oneOf(
    value,
    'approval-malformed',
    'approval-edit-invalid',
    'approval-not-found',
    'approval-not-yours',
    'approval-tampered',
    'approval-expired',
    'approval-stale',
    'approval-changed',
    'approval-conflict',
    'approval-interrupted',
    'ledger-unavailable',
  )
}

export function readDelivery(value: unknown): Delivery | undefined {
  return oneOf(value, 'waiting', 'sent', 'settled', 'unknown')
}

/** Whether a value is one of the codes of a refused answer. */
export function isRefusal(value: unknown): value is ApprovalErrorCode {
  return readRefusal(value) !== undefined
}

/** Whether a refusal is about the answer alone, so that the request is open to another one: a shorter one, other arguments, the right person. */
export function leavesOpen(
  code: string | undefined,
): code is 'approval-edit-invalid' | 'approval-not-yours' | 'request-refused' {
  return code === 'approval-edit-invalid' || code === 'approval-not-yours' || code === 'request-refused'
}

/** `CUSTOM approval-refused`: the server did not take an answer. */
export function refuseApproval(state: ChatState, value: unknown): Outcome {
  const refused = isRecord(value) ? value : {}
  const call = state.approvals.get(asString(refused.approvalId) ?? '')
  if (!call) return 'unknown-id'
  const problem = readRefusal(refused.code) ?? 'approval-malformed'
  const error = { message: asString(refused.message) ?? 'The answer was refused.', code: problem }
  if (leavesOpen(problem)) {
    // the question is not used up: it is as it was, and says what is wrong with the answer
    if (reopen(state, call)) call.error = error
  } else if (problem === 'ledger-unavailable') {
    if (call.state === 'approval-responded') {
      setApproval(state, call, { problem, delivery: 'waiting' })
      state.unsent.add(call)
    }
  } else if (mayHaveRun(problem) ? call.state === 'approval-responded' : moveCall(state, call, 'cancelled')) {
    call.error = error
    setApproval(state, call, { problem, delivery: 'settled' })
    state.unsent.delete(call)
  }
  return undefined
}

/** Takes the answer of a call back; says whether there was one. */
export function reopen(state: ChatState, call: CallDraft): boolean {
  if (!call.approval || !moveCall(state, call, 'approval-requested')) return false
  const { approved, reason, scope, input, delivery, sentIn, ...asked } = call.approval
  call.approval = asked
  state.unsent.delete(call)
  return true
}

/** Another answer was first, or the call was begun: its outcome may follow, and counts. */
function mayHaveRun(problem: ApprovalErrorCode): boolean {
  return problem === 'approval-conflict' || problem === 'approval-interrupted'
}

/** Whether an answer may be given now, and if not, why. A closed request tells its reason. */
export type Answerable =
  | { readonly status: 'open'; readonly call: CallDraft; readonly approval: ToolCallApproval }
  | { readonly status: 'not-found' | 'already-answered' }
  | { readonly status: 'closed'; readonly reason: string }

export function findAnswerable(state: ChatState, approvalId: string): Answerable {
  const call = state.approvals.get(approvalId)
  const approval = call?.approval
  if (!approval) return { status: 'not-found' }
  // the server threw before it used any answer: to say no is a way out
  const isUnused = call.state === 'approval-responded' && state.error?.data.code === 'tool-not-found'
  if (isUnused) return { status: 'open', call, approval }
  if (approval.approved !== undefined) return { status: 'already-answered' }
  const reason = approval.problem ?? call.state
  return reason === 'approval-requested' ? { status: 'open', call, approval } : { status: 'closed', reason }
}
