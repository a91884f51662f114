import type { ApprovalErrorCode } from '../errors.js'
import type { ApprovalOption, ToolCallApproval } from '../messages.js'
import type { Interrupt } from '../protocol/events.js'
import { moveCall, touchPart } from './cells.js'
import { type Effect, none, warn } from './effects.js'
import type { CallCell, ChatState } from './state.js'
import { isRecord, ours, sameJson, string } from './value.js'

/** A request for approval as read from the wire: an event, an interrupt or a snapshot. */
interface AskedApproval {
  readonly toolCallId: string
  readonly toolName?: string | undefined
  /** Present where the source carries the arguments. */
  readonly input?: { readonly value: unknown } | undefined
  readonly approval: ToolCallApproval
}

/** `CUSTOM approval-requested` (design: the server asks once its gate has decided, during the model's stream). */
export function readApprovalEvent(value: unknown): AskedApproval | undefined {
  if (!isRecord(value)) return undefined
  const toolCallId = string(value.toolCallId)
  const approval = readApproval(value.approval)
  if (toolCallId === undefined || !approval) return undefined
  return {
    toolCallId,
    toolName: string(value.toolName),
    input: 'input' in value ? { value: value.input } : undefined,
    approval,
  }
}

/** An AG-UI interrupt that concerns a tool call. A server of another make tells less; the rest takes its defaults. */
export function readApprovalInterrupt(interrupt: Interrupt): AskedApproval | undefined {
  if (interrupt.toolCallId === undefined) return undefined
  const own = ours(interrupt.metadata)
  const more = isRecord(own.approval) ? own.approval : own
  const approval = readApproval({
    ...more,
    id: interrupt.id,
    message: interrupt.message ?? more.message,
    expiresAt: interrupt.expiresAt ?? more.expiresAt,
    allowEdits: more.allowEdits ?? offersEdits(interrupt.responseSchema),
    token: own.token ?? more.token,
  })
  if (!approval) return undefined
  return {
    toolCallId: interrupt.toolCallId,
    toolName: string(own.toolName),
    input: 'input' in own ? { value: own.input } : undefined,
    approval,
  }
}

/** AG-UI: `editedArgs` in the response schema is how a server says that arguments may be edited. */
function offersEdits(schema: unknown): true | undefined {
  const properties = isRecord(schema) ? schema.properties : undefined
  return isRecord(properties) && 'editedArgs' in properties ? true : undefined
}

/** Reads the question's side of an approval; an answer in it is not taken over: no stream says yes for the person. */
export function readApproval(value: unknown): ToolCallApproval | undefined {
  if (!isRecord(value)) return undefined
  const id = string(value.id)
  if (id === undefined) return undefined
  const message = string(value.message)
  const expiresAt = string(value.expiresAt)
  const token = string(value.token)
  const allowEdits = readEdits(value.allowEdits)
  return {
    id,
    needsApproval: true,
    options: readOptions(value.options),
    ...(allowEdits !== undefined && { allowEdits }),
    ...(message !== undefined && { message }),
    ...(expiresAt !== undefined && { expiresAt }),
    ...(value.display !== undefined && { display: value.display }),
    ...(token !== undefined && { token }),
  }
}

function readOptions(value: unknown): readonly ApprovalOption[] {
  const known = (option: unknown): option is ApprovalOption =>
    option === 'deny' || option === 'once' || option === 'session'
  const options = Array.isArray(value) ? value.filter(known) : []
  return options.length > 0 ? options : ['deny', 'once']
}

function readEdits(value: unknown): boolean | readonly string[] | undefined {
  if (typeof value === 'boolean') return value
  return Array.isArray(value) ? value.filter((key) => typeof key === 'string') : undefined
}

/** Folds a request into its call. All ways of asking end here, so asking twice in two ways is one request. */
export function askApproval(state: ChatState, asked: AskedApproval): readonly Effect[] {
  const call = state.calls.get(asked.toolCallId)
  if (!call)
    return warn('unknown-id', `An approval was requested for the unknown tool call "${asked.toolCallId}".`)
  return askCall(state, call, asked)
}

export function askCall(state: ChatState, call: CallCell, asked: AskedApproval): readonly Effect[] {
  const { approval } = asked
  const owner = state.approvals.get(approval.id)
  if (owner && owner !== call) {
    return warn('illegal-step', `The approval "${approval.id}" was requested for two tool calls.`)
  }
  if (call.approval) return askAgain(state, call, asked)
  if (!moveCall(state, call, 'approval-requested')) {
    return warn('illegal-step', `An approval was requested for "${call.id}", which is ${call.state}.`)
  }
  const changed = differs(call, asked)
  call.approval = {
    ...approval,
    ...(call.token !== undefined && { token: call.token }),
    ...(changed && { problem: 'approval-changed' }),
  }
  state.approvals.set(approval.id, call)
  return changed ? warn('illegal-step', changedMessage(call)) : [requested(call, call.approval)]
}

function requested(call: CallCell, approval: ToolCallApproval): Effect {
  return {
    type: 'approval-requested',
    messageId: call.owner.id,
    toolCallId: call.id,
    toolName: call.name,
    input: call.input,
    approval,
  }
}

/**
 * The same request a second time (event and interrupt, a reconnect). What the person was shown is frozen: a request that differs
 * cannot be answered any more, instead of being swapped under the person's hand.
 */
function askAgain(state: ChatState, call: CallCell, asked: AskedApproval): readonly Effect[] {
  if (call.state !== 'approval-requested' || !call.approval) return none
  const before = call.approval
  const after = asked.approval
  const same =
    before.id === after.id &&
    agrees(before.message, after.message) &&
    agrees(before.expiresAt, after.expiresAt) &&
    agrees(before.token, after.token) &&
    agrees(before.display, after.display) &&
    !differs(call, asked)
  return same ? none : markChanged(state, call)
}

/** A later source may tell less than an earlier one, but not something else. */
function agrees(before: unknown, after: unknown): boolean {
  return before === undefined || after === undefined || sameJson(before, after)
}

function differs(call: CallCell, asked: AskedApproval): boolean {
  if (asked.toolName !== undefined && asked.toolName !== call.name) return true
  if (!agrees(call.token, asked.approval.token)) return true
  return asked.input !== undefined && !sameJson(asked.input.value, call.input)
}

/** Makes a pending request unanswerable, because what it asks is no longer what was shown. */
export function markChanged(state: ChatState, call: CallCell): readonly Effect[] {
  if (call.state !== 'approval-requested' || !call.approval || call.approval.problem) return none
  setApproval(state, call, { problem: 'approval-changed' })
  return warn('illegal-step', changedMessage(call))
}

function changedMessage(call: CallCell): string {
  return `The request for "${call.id}" changed after it was shown; it cannot be answered.`
}

export function setApproval(state: ChatState, call: CallCell, change: Partial<ToolCallApproval>): void {
  if (!call.approval) return
  call.approval = { ...call.approval, ...change }
  touchPart(state, call.owner, call)
}

const refusals = new Set<unknown>([
  'approval-malformed',
  'approval-not-found',
  'approval-not-yours',
  'approval-tampered',
  'approval-expired',
  'approval-stale',
  'approval-changed',
  'approval-conflict',
  'approval-interrupted',
  'ledger-unavailable',
] satisfies ApprovalErrorCode[])

/** Whether a value is one of the codes of a refused answer. */
export function isRefusal(code: unknown): code is ApprovalErrorCode {
  return refusals.has(code)
}

/** `CUSTOM approval-refused`: the server did not take an answer. */
export function refuseApproval(state: ChatState, value: unknown): readonly Effect[] {
  const refused = isRecord(value) ? value : {}
  const id = string(refused.approvalId)
  const call = id === undefined ? undefined : state.approvals.get(id)
  if (!call?.approval) return warn('unknown-id', `An unknown approval "${id}" was refused.`)
  const code: ApprovalErrorCode = isRefusal(refused.code) ? refused.code : 'approval-malformed'
  if (code === 'ledger-unavailable') {
    if (call.state !== 'approval-responded') return none
    setApproval(state, call, { problem: code, delivery: 'waiting' })
    state.unsent.add(call)
    return none
  }
  if (!moveCall(state, call, 'cancelled')) return none
  call.error = { message: string(refused.message) ?? 'The answer was refused.', code }
  setApproval(state, call, { problem: code, delivery: 'settled' })
  state.unsent.delete(call)
  return none
}

/** Whether an answer may be given now, and if not, why. A closed request tells its reason. */
export type Answerable =
  | { readonly status: 'open'; readonly call: CallCell; readonly approval: ToolCallApproval }
  | { readonly status: 'not-found' | 'already-answered' }
  | { readonly status: 'closed'; readonly reason: string }

export function findAnswerable(state: ChatState, approvalId: string): Answerable {
  const call = state.approvals.get(approvalId)
  if (!call?.approval) return { status: 'not-found' }
  if (call.approval.approved !== undefined) return { status: 'already-answered' }
  if (call.state !== 'approval-requested')
    return { status: 'closed', reason: call.approval.problem ?? call.state }
  if (call.approval.problem) return { status: 'closed', reason: call.approval.problem }
  return { status: 'open', call, approval: call.approval }
}
