import { isTerminal } from '../messages.js'
import { withdrawAnswer } from './calls.js'
import { checkMessages } from './check-messages.js'
import type { CallDraft, InterruptDraft, QueuedMessage } from './data.js'
import { dropUnfinished, retainMessages } from './drafts.js'
import { setResponse, withdraw } from './interrupts.js'
import { loadMessages, settleCopy, settleReplaced } from './load.js'
import type { ChatState, StepTable } from './state.js'

export const conversationSteps = {
  /** The user sent another message: requests visible to them now no longer hold back messages queued earlier. */
  queue(state, { item }) {
    checkMessages([item.message])
    const released = state.queue.map((waiting) => ({
      ...waiting,
      visible: [...new Set([...waiting.visible, ...item.visible])],
    }))
    setQueue(state, [...released, item])
    return undefined
  },
  unqueue(state, { id }) {
    setQueue(
      state,
      state.queue.filter((item) => item.id !== id),
    )
    return undefined
  },
  append(state, { message }) {
    loadMessages(state, checkMessages([message]), settleCopy)
    return undefined
  },
  'set-state'(state, { state: shared }) {
    state.shared = shared
    state.pendingNotification = 'change'
    return undefined
  },
  /** The failed request is not repeated, nor are the answers that it may have delivered. */
  'clear-error'(state) {
    if (state.error) for (const item of state.unsent) giveUp(state, item)
    state.error = undefined
    state.pendingNotification = 'change'
    return undefined
  },
  'set-messages'(state, { messages }) {
    const own = checkMessages(messages)
    const answered = new Map(state.approvals)
    retainMessages(state, () => false)
    state.turn = 0
    state.interrupts.clear()
    state.subagents.clear()
    state.unsent.clear()
    state.error = undefined
    state.usage = []
    if (state.run.phase === 'idle') state.run = { phase: 'idle' }
    loadMessages(state, own, (part) => settleReplaced(part, answered))
    setQueue(state, [])
    return undefined
  },
  'drop-unfinished'(state) {
    if (state.run.phase === 'idle' && state.run.from) dropUnfinished(state, state.run.from)
    return undefined
  },
  failed(state, { error }) {
    state.error = error
    state.pendingNotification = 'change'
    return undefined
  },
  truncate(state, { messageId, inclusive }) {
    const from = state.messages.get(messageId)
    if (!from) return 'unknown-id'
    const last = inclusive ? from.position - 1 : from.position
    // What follows is another request than the one that failed.
    state.error = undefined
    // AG-UI requires every interrupt to be answered or cancelled, so the approval requests of the dropped part are withdrawn.
    for (const call of new Set([...state.unsent, ...state.open])) {
      if (call.kind !== 'call' || call.owner.position <= last || !call.approval) continue
      const isOver = isTerminal(call.state) && call.state !== 'cancelled'
      if (!isOver && call.approval.delivery !== 'settled') withdraw(state, call.approval)
    }
    retainMessages(state, (draft) => draft.position <= last)
    for (const draft of state.interrupts.values()) setResponse(state, draft, { cancel: true })
    return undefined
  },
} satisfies Partial<StepTable>

function giveUp(state: ChatState, item: CallDraft | InterruptDraft): void {
  if (item.kind === 'call') {
    if (item.approval?.delivery === 'unknown') withdrawAnswer(state, item)
  } else if (item.sent) {
    state.unsent.delete(item)
    state.interrupts.delete(item.interrupt.id)
  }
}

function setQueue(state: ChatState, queue: readonly QueuedMessage[]): void {
  state.queue = queue
  state.pendingNotification = 'change'
}
