import { isRecord } from '@countersign/core'
import type { Step } from './persistence.js'

/** The tool calls that the last run of this page has made, or was handed. Other pages run the client tools of theirs. */
export class OwnCalls {
  /** Undefined where that run was lost: until the conversation is loaded again, another page may have gone on with its calls. */
  #ids: Set<string> | undefined

  has(toolCallId: string): boolean {
    return this.#ids?.has(toolCallId) === true
  }

  /** Follows a step before it is applied. `isOwn`: the open run is one of this page. */
  follow(step: Step, isOwn: boolean): void {
    if (step.type === 'run-opened' || (step.type === 'restore' && !isOwn)) this.#ids = new Set()
    if (!isOwn) return
    if (step.type === 'run-closed' && step.end.type !== 'success') this.#ids = undefined
    else if (step.type === 'TOOL_CALL_START') this.#ids?.add(step.toolCallId)
    else if (step.type === 'CUSTOM' && step.name === 'client-tool-ready' && isRecord(step.value))
      this.#ids?.add(String(step.value.toolCallId))
  }
}
