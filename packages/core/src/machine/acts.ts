import type { CountersignError } from '../errors.js'
import { isTerminal, type UIMessage } from '../messages.js'
import { dropUnfinished, retainMessages } from './cells.js'
import type { StepTable } from './effects.js'
import { setResponse, withdraw } from './interrupts.js'
import { checkMessages, loadMessages } from './load.js'
import type { MirrorState } from './mirror.js'
import type { ThreadRecord } from './record.js'
import type { RunEnd } from './runs.js'
import type { ChatState, QueuedMessage } from './state.js'

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
  /** The last run failed and is to be repeated: what it left unfinished will be said anew. */
  | { readonly type: 'drop-unfinished' }
  | { readonly type: 'run-opened'; readonly runId: string }
  | { readonly type: 'run-rejoined'; readonly runId: string }
  /** `uncertain`: the server may have begun although nothing came of it yet, and would carry the same answer out twice. */
  | { readonly type: 'run-closed'; readonly end: RunEnd; readonly uncertain?: boolean | undefined }
  | { readonly type: 'set-messages'; readonly messages: readonly UIMessage[] }
  | { readonly type: 'restore'; readonly record: ThreadRecord }
  | { readonly type: 'mirror'; readonly state: MirrorState }
  /** An answer is on its way into the open run (`sent`), or did not get there after all. */
  | { readonly type: 'answer-sent'; readonly approvalId: string }
  | { readonly type: 'answer-returned'; readonly approvalId: string }
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

/** The steps that concern the conversation as a whole. */
export const actSteps = {
  /** The person speaks again: what they see now no longer holds back what they said before. */
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
  'set-messages'(state, { messages }) {
    const own = checkMessages(messages)
    retainMessages(state, () => false)
    state.turn = 0
    state.interrupts.clear()
    state.subagents.clear()
    state.unsent.clear()
    state.error = undefined
    if (state.run.phase === 'idle') state.run = { phase: 'idle' }
    loadMessages(state, own)
    setQueue(state, [])
    return undefined
  },
  'drop-unfinished'(state) {
    if (state.run.phase === 'idle' && state.run.from) dropUnfinished(state, state.run.from)
    return undefined
  },
  failed(state, { error }) {
    state.error = error
    state.owed = 'change'
    return undefined
  },
  truncate(state, { messageId }) {
    const last = state.messages.get(messageId)
    if (!last) return 'unknown-id'
    // Questions of the dropped part are not silently forgotten: AG-UI wants each one answered or cancelled.
    for (const call of new Set([...state.unsent, ...state.open])) {
      if (call.kind !== 'call' || call.owner.position <= last.position || !call.approval) continue
      const isOver = isTerminal(call.state) && call.state !== 'cancelled'
      if (!isOver && call.approval.delivery !== 'settled') withdraw(state, call.approval)
    }
    retainMessages(state, (cell) => cell.position <= last.position)
    for (const cell of state.interrupts.values()) setResponse(state, cell, { cancel: true })
    return undefined
  },
} satisfies Partial<StepTable>

function setQueue(state: ChatState, queue: readonly QueuedMessage[]): void {
  state.queue = queue
  state.owed = 'change'
}
