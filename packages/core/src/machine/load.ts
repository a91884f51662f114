import { isTerminal, type ToolCallApproval, type ToolCallPart, type UIMessage } from '../messages.js'
import { omitUndefined } from '../value.js'
import { addCall } from './calls.js'
import { answerHere } from './client-calls.js'
import type { CallDraft, MessageDraft } from './data.js'
import { addDone, addMessage } from './drafts.js'
import { protectedCall, setPublished } from './read.js'
import { incomplete } from './runs.js'
import type { ChatState } from './state.js'

type Settle = (part: ToolCallPart) => ToolCallPart

/** Loads finished messages. If two have the same id, the first is kept. */
export function loadMessages(
  state: ChatState,
  messages: readonly UIMessage[],
  settle: Settle = settleLoaded,
): void {
  for (const message of messages) if (!state.messages.has(message.id)) loadMessage(state, message, settle)
}

/**
 * Loads a finished message from storage, from the application or from a snapshot. What needs no change keeps its identity.
 * Nothing runs and nothing is sent because of it. If an answer was in transit when it was stored, its delivery becomes unknown.
 */
export function loadMessage(state: ChatState, message: UIMessage, settle: Settle = settleLoaded): void {
  const draft = addMessage(state, message)
  let changed = false
  const interrupted: CallDraft[] = []
  for (const part of message.parts) {
    if (part.type !== 'tool-call') addDone(state, draft, part)
    else {
      const settled = settle(part)
      const call = loadCall(state, draft, settled)
      changed ||= settled !== part
      if (settled !== part && part.state === 'executing') interrupted.push(call)
    }
  }
  // The client tool was running. The server must learn that it may have run, so that nothing runs it again.
  for (const call of interrupted) {
    if (call.error) answerHere(state, call, `${call.id}-interrupted`, { error: call.error })
  }
  if (changed) return
  setPublished(draft, message)
}

export function loadCall(state: ChatState, owner: MessageDraft, part: ToolCallPart): CallDraft {
  const {
    id,
    name,
    input,
    state: reached,
    approval,
    progress,
    output,
    error,
    providerExecuted = false,
    metadata,
  } = part
  const call = addCall(state, owner, {
    id,
    name,
    arguments: part.arguments,
    input,
    state: reached,
    approval,
    progress,
    output,
    error,
    providerExecuted,
    metadata: metadata && { ...metadata },
    part: protectedCall(part),
  })
  const { approved, delivery, sentIn } = approval ?? {}
  call.mayHaveArrived = delivery === 'unknown' || sentIn !== undefined
  const unsettled = delivery === 'waiting' || delivery === 'unknown'
  if (unsettled && (approved === undefined || !isTerminal(reached))) state.unsent.add(call)
  return call
}

/** The error of a call that nobody waits for any more. */
export const interrupted = {
  message: 'It was interrupted and may or may not have run.',
  code: 'interrupted',
}

/**
 * Corrects what can no longer be true after a conversation was stored and loaded. `run`: whether a run was open then, so that
 * an answer or a cancellation in transit may not have arrived; absent if that is not known.
 */
export function settleLoaded(part: ToolCallPart, run?: 'open' | 'none'): ToolCallPart {
  if (part.state === 'awaiting-input' || part.state === 'input-streaming') {
    return { ...part, state: 'cancelled', error: incomplete }
  }
  // Whether the result may still come is decided anew.
  if (part.state === 'input-complete' && part.error) return omitUndefined({ ...part, error: undefined })
  if (part.state === 'executing') return { ...part, state: 'error', error: interrupted }
  const { problem, delivery } = part.approval ?? {}
  // As at the end of a run: no result comes any more.
  if (part.state === 'approval-responded' && problem && delivery === 'settled')
    return { ...part, state: 'cancelled' }
  const isCancellation = run === 'open' && part.state === 'cancelled' && part.approval?.approved === undefined
  const mayBeLost = isCancellation || (part.state === 'approval-responded' && run !== 'none')
  if (mayBeLost && part.approval?.delivery === 'sent') {
    return { ...part, approval: { ...part.approval, delivery: 'unknown' } }
  }
  return part
}

/** The same for messages that may be a copy: an answer in transit counts as a new one, so that only one of two pages gets its outcome. */
export function settleCopy(given: ToolCallPart): ToolCallPart {
  const part = settleLoaded(given)
  const { sentIn, ...approval } = part.approval ?? {}
  const isUnderWay = part.approval?.delivery === 'waiting' || part.approval?.delivery === 'unknown'
  return sentIn !== undefined && isUnderWay ? { ...part, approval: approval as ToolCallApproval } : part
}

/**
 * The same for messages that replace these. `answered`: the calls that had requests here. Answers that were given here are not sent any
 * more: where no server can have one, its request is open again; otherwise the call may or may not have run.
 */
export function settleReplaced(part: ToolCallPart, answered: ReadonlyMap<string, CallDraft>): ToolCallPart {
  if (part.state !== 'approval-responded' || !part.approval) return settleCopy(part)
  const { approved, delivery, reason, scope, mandate, input, edited, sentIn, ...asked } = part.approval
  const call = answered.get(asked.id)
  if (call?.id !== part.id || call.approval?.id !== asked.id || delivery === 'settled')
    return settleCopy(part)
  const { approval, mayHaveArrived, inDoubt } = call
  if (approval.delivery === 'waiting' && !mayHaveArrived && !approval.sentIn)
    return { ...part, state: 'approval-requested', approval: asked }
  if (approval.delivery === 'sent' && !inDoubt) return { ...part, approval }
  const lost = { delivery: 'settled', problem: 'approval-interrupted' } as const
  return settleLoaded({ ...part, approval: { ...part.approval, ...lost } })
}
