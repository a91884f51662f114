import type { CountersignError } from '../errors.js'
import type { ToolCallApproval, ToolResultPart, UIMessage } from '../messages.js'
import { findAnswerable, setApproval } from './approvals.js'
import { addFixed, addMessage, addResult, addText, moveCall, retainMessages, touchPart } from './cells.js'
import { type Effect, none, warn } from './effects.js'
import { loadMessage } from './load.js'
import { applyMirror, type MirrorState } from './mirror.js'
import { restoreRecord, type ThreadRecord } from './record.js'
import { closeRun, openRun, type RunEnd, rejoinRun } from './runs.js'
import type { CallCell, ChatState, QueuedMessage } from './state.js'
import { isRecord } from './value.js'

/** What happens here, beside the events of a stream. The machine takes both alike. */
export type LocalAct =
  | { readonly type: 'user-message'; readonly message: UIMessage }
  | { readonly type: 'queue'; readonly item: QueuedMessage }
  | { readonly type: 'unqueue'; readonly id: string }
  | ({ readonly type: 'answer'; readonly approvalId: string } & Answer)
  /** Requests (approvals or interrupts) that nobody answered: the person moved on, or their time ran out. */
  | { readonly type: 'close'; readonly ids: readonly string[]; readonly because: 'moved-on' | 'expired' }
  | {
      readonly type: 'respond'
      readonly interruptId: string
      readonly response: { readonly payload: unknown } | { readonly cancel: true }
    }
  | { readonly type: 'tool-started'; readonly toolCallId: string }
  | ({ readonly type: 'tool-output'; readonly toolCallId: string; readonly messageId: string } & ToolOutput)
  | { readonly type: 'run-opened' | 'run-rejoined'; readonly runId: string }
  | { readonly type: 'run-closed'; readonly end: RunEnd }
  | { readonly type: 'set-messages'; readonly messages: readonly UIMessage[] }
  | { readonly type: 'restore'; readonly record: ThreadRecord }
  | { readonly type: 'mirror'; readonly state: MirrorState }
  /** An answer is on its way into the open run (`sent`), or did not get there after all. */
  | { readonly type: 'answer-sent' | 'answer-returned'; readonly approvalId: string }
  /** Something went wrong outside of a run. */
  | { readonly type: 'failed'; readonly error: CountersignError }
  /** Drops every message after this one. */
  | { readonly type: 'truncate'; readonly messageId: string }

/** A person's answer to a request. `input` are the arguments as edited. */
export interface Answer {
  readonly approved: boolean
  readonly reason?: string | undefined
  readonly scope?: 'once' | 'session' | undefined
  readonly input?: unknown
}

export type ToolOutput =
  | { readonly output: unknown }
  | { readonly error: { readonly message: string; readonly code?: string } }

export function applyAct(state: ChatState, act: LocalAct): readonly Effect[] {
  switch (act.type) {
    case 'user-message':
      return addUserMessage(state, act.message)
    case 'queue':
      return enqueue(state, act.item)
    case 'unqueue':
      return setQueue(
        state,
        state.queue.filter((item) => item.id !== act.id),
      )
    case 'answer':
      return answer(state, act.approvalId, act)
    case 'close':
      for (const id of act.ids) closeRequest(state, id, act.because)
      return none
    case 'respond':
      return respond(state, act.interruptId, act.response)
    case 'tool-started':
      return startTool(state, act.toolCallId)
    case 'tool-output':
      return finishTool(state, act.toolCallId, act.messageId, act)
    case 'run-opened':
      return openRun(state, act.runId)
    case 'run-rejoined':
      return rejoinRun(state, act.runId)
    case 'run-closed':
      return closeRun(state, act.end)
    case 'set-messages':
      return setMessages(state, act.messages)
    case 'restore':
      restoreRecord(state, act.record)
      return none
    case 'mirror':
      applyMirror(state, act.state)
      return none
    case 'answer-sent':
    case 'answer-returned':
      return moveAnswer(state, act.approvalId, act.type === 'answer-sent')
    case 'failed':
      state.error = act.error
      state.owed = 'change'
      return none
    case 'truncate':
      return truncate(state, act.messageId)
    default:
      return act satisfies never
  }
}

function addUserMessage(state: ChatState, message: UIMessage): readonly Effect[] {
  if (state.messages.has(message.id))
    return warn('illegal-step', `There is a message "${message.id}" already.`)
  const cell = addMessage(state, message)
  for (const part of message.parts) {
    if (part.type === 'text') addText(state, cell, part.text)
    else addFixed(state, cell, part)
  }
  return none
}

/** The person speaks again: what they see now no longer holds back what they said before. */
function enqueue(state: ChatState, item: QueuedMessage): readonly Effect[] {
  const released = state.queue.map((waiting) => ({
    ...waiting,
    visible: [...new Set([...waiting.visible, ...item.visible])],
  }))
  return setQueue(state, [...released, item])
}

function setQueue(state: ChatState, queue: readonly QueuedMessage[]): readonly Effect[] {
  state.queue = queue
  state.owed = 'change'
  return none
}

/** First answer wins: only an open request takes one. */
function answer(state: ChatState, approvalId: string, given: Answer): readonly Effect[] {
  const found = findAnswerable(state, approvalId)
  if (found.status === 'not-found')
    return warn('unknown-id', `There is no approval "${approvalId}" to answer.`)
  if (found.status !== 'open' || !moveCall(state, found.call, 'approval-responded')) return none
  const change: Partial<ToolCallApproval> = {
    approved: given.approved,
    delivery: 'waiting',
    ...(given.reason !== undefined && { reason: given.reason }),
    ...(given.approved && given.scope !== undefined && { scope: given.scope }),
    ...(given.approved && given.input !== undefined && { input: given.input }),
  }
  setApproval(state, found.call, change)
  state.unsent.add(found.call)
  return [{ type: 'approval-responded', toolCallId: found.call.id, approvalId, approved: given.approved }]
}

/** Live answers go with the run that is open: if it breaks, their fate is as unknown as that of the answers it began with. */
function moveAnswer(state: ChatState, approvalId: string, sent: boolean): readonly Effect[] {
  const call = state.approvals.get(approvalId)
  if (call?.state !== 'approval-responded') return none
  if (state.run.phase !== 'idle') {
    const carried = state.run.carried.filter((item) => item !== call)
    state.run = { ...state.run, carried: sent ? [...carried, call] : carried }
  }
  if (sent) state.unsent.delete(call)
  else state.unsent.add(call)
  setApproval(state, call, { delivery: sent ? 'sent' : 'waiting' })
  return none
}

function closeRequest(state: ChatState, id: string, because: 'moved-on' | 'expired'): void {
  if (state.interrupts.has(id)) respond(state, id, { cancel: true })
  const call = state.approvals.get(id)
  if (call?.state !== 'approval-requested' || !moveCall(state, call, 'cancelled')) return
  setApproval(state, call, {
    delivery: 'waiting',
    ...(because === 'expired' && { problem: 'approval-expired' }),
  })
  state.unsent.add(call)
}

function respond(
  state: ChatState,
  interruptId: string,
  response: { readonly payload: unknown } | { readonly cancel: true },
): readonly Effect[] {
  const cell = state.interrupts.get(interruptId)
  if (!cell) return warn('unknown-id', `There is no interrupt "${interruptId}" to answer.`)
  if (cell.response) return none
  cell.response = response
  state.unsent.add(cell)
  state.owed = 'change'
  return none
}

function startTool(state: ChatState, toolCallId: string): readonly Effect[] {
  const call = state.calls.get(toolCallId)
  if (!call || !isLeftHere(call) || !moveCall(state, call, 'executing')) {
    return warn('illegal-step', `The client tool call "${toolCallId}" cannot start.`)
  }
  if (call.ready) call.input = call.ready.input
  return none
}

/** Whether a call may run here: nobody had to be asked, or the server took the answer and handed the call out. */
function isLeftHere(call: CallCell): boolean {
  return call.state === 'input-complete' || (call.state === 'approval-responded' && call.ready !== undefined)
}

function finishTool(
  state: ChatState,
  toolCallId: string,
  messageId: string,
  result: ToolOutput,
): readonly Effect[] {
  const call = state.calls.get(toolCallId)
  const failed = 'error' in result
  const due = call !== undefined && (call.state === 'executing' || isLeftHere(call))
  if (!due || !moveCall(state, call, failed ? 'error' : 'complete')) {
    return warn('illegal-step', `A result was given for "${toolCallId}", which does not wait for one.`)
  }
  if (failed) call.error = result.error
  else call.output = result.output
  call.outputSent = false
  state.unsent.add(call)
  touchPart(state, call.owner, call)
  const part: ToolResultPart = {
    type: 'tool-result',
    id: messageId,
    toolCallId,
    content: failed
      ? JSON.stringify({ type: 'execution-error', reason: result.error.message })
      : toJson(result.output),
    ...(failed && { error: result.error.message, metadata: { countersign: { outcome: 'error' } } }),
  }
  addResult(state, call.owner, part, call)
  return none
}

/** AG-UI results are text. What has no JSON form is said to have none, so that the model is not left without a result. */
function toJson(output: unknown): string {
  try {
    return JSON.stringify(output) ?? 'null'
  } catch {
    return JSON.stringify(isRecord(output) ? '[object without a JSON form]' : String(output))
  }
}

function setMessages(state: ChatState, messages: readonly UIMessage[]): readonly Effect[] {
  retainMessages(state, () => false)
  state.turn = 0
  state.interrupts.clear()
  state.unsent.clear()
  state.error = undefined
  state.queue = []
  if (state.run.phase === 'idle') state.run = { phase: 'idle' }
  for (const message of messages) {
    if (!state.messages.has(message.id)) loadMessage(state, message)
  }
  state.owed = 'change'
  return none
}

function truncate(state: ChatState, messageId: string): readonly Effect[] {
  const last = state.messages.get(messageId)
  if (!last) return warn('unknown-id', `There is no message "${messageId}" to go back to.`)
  retainMessages(state, (cell) => cell.position <= last.position)
  // Questions of the dropped part are not silently forgotten: AG-UI wants each one answered or cancelled.
  for (const id of state.interrupts.keys()) respond(state, id, { cancel: true })
  return none
}
