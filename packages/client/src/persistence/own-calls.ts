import { type ChatState, isRecord } from '@countersign/core'
import type { Step } from './persistence.js'

/** The tool calls that the last run of this page has made, or was handed. Other pages run the client tools of theirs. */
export class OwnCalls {
  readonly #known: ChatState['calls']
  readonly #ids = new Set<string>()
  /** The last run was stopped, or its reply was lost: the next one brings what it had made. */
  #isLost = false

  constructor({ calls }: Pick<ChatState, 'calls'>) {
    this.#known = calls
  }

  has(toolCallId: string): boolean {
    return this.#ids.has(toolCallId)
  }

  /** Follows a step before it is applied. `isOwn`: the open run is one of this page. */
  follow(step: Step, isOwn: boolean): void {
    if (step.type === 'run-opened' && !this.#isLost) this.#ids.clear()
    if (!isOwn) return
    if (step.type === 'TOOL_CALL_START') this.#ids.add(step.toolCallId)
    else if (step.type === 'CUSTOM' && step.name === 'client-tool-ready' && isRecord(step.value))
      this.#ids.add(String(step.value.toolCallId))
    else if (step.type === 'run-closed') this.#isLost = step.end.type !== 'success'
    else if (step.type === 'MESSAGES_SNAPSHOT' && this.#isLost)
      for (const message of step.messages)
        for (const { id } of (message.role === 'assistant' && message.toolCalls) || [])
          if (!this.#known.has(id)) this.#ids.add(id)
  }
}
