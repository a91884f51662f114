import type { ChatState } from '@countersign/core'
import type { Step } from './persistence.js'

/** Client tool calls that another page's run has made, as far as this page learns of them from a run of its own. */
export class CallsElsewhere {
  readonly #state: Pick<ChatState, 'calls' | 'error'>
  readonly #ids = new Set<string>()
  /** The open run may bring what this page has lost. */
  #mayBeOwn = false

  constructor(state: Pick<ChatState, 'calls' | 'error'>) {
    this.#state = state
  }

  has(toolCallId: string): boolean {
    return this.#ids.has(toolCallId)
  }

  /** Follows a step before it is applied. */
  follow(step: Step): void {
    if (step.type === 'run-opened') this.#mayBeOwn = step.again || this.#state.error !== undefined
    if (step.type !== 'MESSAGES_SNAPSHOT' || this.#mayBeOwn) return
    for (const message of step.messages)
      for (const { id } of (message.role === 'assistant' && message.toolCalls) || [])
        if (!this.#state.calls.has(id)) this.#ids.add(id)
  }
}
