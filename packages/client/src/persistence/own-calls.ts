import { isRecord } from '@countersign/core'
import type { Step } from './persistence.js'

/** The tool calls that the last run of this page has made, or was handed. Other pages run the client tools of theirs. */
export class OwnCalls {
  readonly #ids = new Set<string>()

  has(toolCallId: string): boolean {
    return this.#ids.has(toolCallId)
  }

  /** Follows a step before it is applied. `isOwn`: the open run is one of this page. */
  follow(step: Step, isOwn: boolean): void {
    if (step.type === 'run-opened') this.#ids.clear()
    if (!isOwn) return
    if (step.type === 'TOOL_CALL_START') this.#ids.add(step.toolCallId)
    else if (step.type === 'CUSTOM' && step.name === 'client-tool-ready' && isRecord(step.value))
      this.#ids.add(String(step.value.toolCallId))
  }
}
