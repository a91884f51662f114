import {
  type AGUIEvent,
  type ApplyPatch,
  type ChatState,
  createChatState,
  type Effect,
  type EventOf,
  type EventType,
  type LocalEvent,
  type MessagePart,
  mirrorSteps,
  readMessages,
  restoreSteps,
  step,
  type ToolCallApproval,
  type ToolCallPart,
  type UIMessage,
} from '@countersign/core'
import { fullSteps } from '@countersign/core/ag-ui'
import { readPendingApprovals } from '../src/machine/read.js'

export const seed = 20_261_121

export type Step = AGUIEvent | LocalEvent

/** A conversation that is driven step by step, without a client. */
export class Chat {
  readonly state: ChatState
  readonly effects: Effect[] = []

  constructor(options: { applyPatch?: ApplyPatch } = {}) {
    this.state = createChatState({ moreSteps: { ...fullSteps, ...restoreSteps, ...mirrorSteps }, ...options })
  }

  /** Applies the steps in order and returns the effects of the last one. */
  do(...steps: readonly Step[]): readonly Effect[] {
    let last: readonly Effect[] = []
    for (const event of steps) {
      last = step(this.state, event)
      this.effects.push(...last)
    }
    return last
  }

  get messages(): readonly UIMessage[] {
    return readMessages(this.state)
  }

  get pending(): readonly ToolCallPart[] {
    return readPendingApprovals(this.state)
  }

  message(id: string): UIMessage {
    return found(
      this.messages.find((message) => message.id === id),
      `message ${id}`,
    )
  }

  parts(id: string): readonly MessagePart[] {
    return this.message(id).parts
  }

  /** The last call with that id. */
  call(id: string): ToolCallPart {
    return found(this.calls(id).at(-1), `call ${id}`)
  }

  calls(id: string): readonly ToolCallPart[] {
    return this.messages.flatMap(({ parts }) =>
      parts.filter((part): part is ToolCallPart => part.type === 'tool-call' && part.id === id),
    )
  }

  approval(id: string): ToolCallApproval {
    return found(this.call(id).approval, `approval of ${id}`)
  }
}

export function found<T>(value: T | undefined, what = 'a value'): T {
  if (value === undefined) throw new Error(`There is no ${what}`)
  return value
}

export function warnings(effects: readonly Effect[]): readonly string[] {
  return effects.flatMap((effect) => (effect.type === 'warning' ? [effect.code] : []))
}

export function asked(effects: readonly Effect[]): readonly string[] {
  return effects.flatMap((effect) => (effect.type === 'approval-requested' ? [effect.approval.id] : []))
}

type Fields<T extends EventType> = Omit<EventOf<T>, 'type'>

/** The metadata that Countersign peers write for one another. */
export const own = (countersign: Record<string, unknown>) => ({ metadata: { countersign } })

export const runStarted = (runId = 'run-1'): AGUIEvent => ({ type: 'RUN_STARTED', threadId: 'thread', runId })

export const runFinished = (more: Partial<Fields<'RUN_FINISHED'>> = {}): AGUIEvent => ({
  type: 'RUN_FINISHED',
  threadId: 'thread',
  runId: 'run-1',
  ...more,
})

export const opened = (runId = 'run-1'): LocalEvent => ({ type: 'run-opened', runId })

export const closed: LocalEvent = { type: 'run-closed', end: { type: 'success' } }

export const user = (id: string, text = 'Hello', more: Partial<UIMessage> = {}): UIMessage => ({
  id,
  role: 'user',
  parts: [{ type: 'text', text }],
  ...more,
})

export const says = (id: string, text?: string): LocalEvent => ({
  type: 'user-message',
  message: user(id, text),
})

export const textStart = (
  messageId: string,
  more: Partial<Fields<'TEXT_MESSAGE_START'>> = {},
): AGUIEvent => ({
  type: 'TEXT_MESSAGE_START',
  messageId,
  ...more,
})

export const textDelta = (messageId: string, delta: string): AGUIEvent => ({
  type: 'TEXT_MESSAGE_CONTENT',
  messageId,
  delta,
})

export const textEnd = (messageId: string, metadata?: Record<string, unknown>): AGUIEvent => ({
  type: 'TEXT_MESSAGE_END',
  messageId,
  ...(metadata && { metadata }),
})

export const text = (messageId: string, content: string): readonly AGUIEvent[] => [
  textStart(messageId),
  textDelta(messageId, content),
  textEnd(messageId),
]

export const start = (
  toolCallId: string,
  more: Partial<Fields<'TOOL_CALL_START'>> = { parentMessageId: 'a1' },
): AGUIEvent => ({ type: 'TOOL_CALL_START', toolCallId, toolCallName: 'remove', ...more })

export const args = (toolCallId: string, delta: string): AGUIEvent => ({
  type: 'TOOL_CALL_ARGS',
  toolCallId,
  delta,
})

export const end = (toolCallId: string, metadata?: Record<string, unknown>): AGUIEvent => ({
  type: 'TOOL_CALL_END',
  toolCallId,
  ...(metadata && { metadata }),
})

/** A whole call, its arguments complete. */
export const call = (
  toolCallId: string,
  input: unknown = { path: '/a' },
  more?: Partial<Fields<'TOOL_CALL_START'>>,
): readonly AGUIEvent[] => [start(toolCallId, more), args(toolCallId, JSON.stringify(input)), end(toolCallId)]

export const result = (
  toolCallId: string,
  content = '"done"',
  more: Partial<Fields<'TOOL_CALL_RESULT'>> = {},
): AGUIEvent => ({
  type: 'TOOL_CALL_RESULT',
  messageId: `result-${toolCallId}`,
  toolCallId,
  content,
  ...more,
})

export const custom = (name: string, value: unknown): AGUIEvent => ({ type: 'CUSTOM', name, value })

/** `approval-requested` as the server sends it. */
export const ask = (
  toolCallId: string,
  approval: Record<string, unknown> = {},
  more: Record<string, unknown> = {},
): AGUIEvent =>
  custom('approval-requested', {
    toolCallId,
    toolName: 'remove',
    input: { path: '/a' },
    approval: { id: `approval_${toolCallId}`, needsApproval: true, options: ['deny', 'once'], ...approval },
    ...more,
  })

export const answer = (
  approvalId: string,
  approved = true,
  more: Partial<Extract<LocalEvent, { type: 'answer' }>> = {},
): LocalEvent => ({ type: 'answer', approvalId, approved, ...more })

/** A call that waits for the person. */
export const pending = (id: string, approval: Record<string, unknown> = {}): readonly AGUIEvent[] => [
  ...call(id),
  ask(id, approval),
]

export const failure = (outcome: string, more: Record<string, unknown> = {}) => own({ outcome, ...more })

/** Freezes a value and everything in it. */
export function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value
  Object.freeze(value)
  for (const inner of Object.values(value)) deepFreeze(inner)
  return value
}
