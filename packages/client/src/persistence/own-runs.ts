import { type ChatState, isRecord } from '@countersign/core'
import type { Step } from './persistence.js'

/** Which runs and tool calls are of this page. Other pages run the client tools of theirs. */
export class OwnRuns {
  readonly #state: Pick<ChatState, 'run'>
  /** The run that was open here last, also if it was only followed. A conversation has one run at a time. */
  #last: string | undefined
  #opened: string | undefined
  /** The run that this page had open before a reload; none where another page of the browser may have taken that up. */
  former: string | undefined
  /** No event of the last run has arrived: the server may not know it. */
  isUnheard = false
  /** The calls that the last run has made, or was handed. Undefined where it was lost: another page may have gone on with them. */
  #calls: Set<string> | undefined

  constructor(state: Pick<ChatState, 'run'>) {
    this.#state = state
  }

  /** Follows a step before it is applied. */
  follow(step: Step): void {
    const isOwn = this.isOpen
    if (step.type === 'run-opened' || step.type === 'run-rejoined') this.#last = step.runId
    if (step.type === 'run-opened') this.#opened = step.runId
    if (step.type === 'run-opened' || (step.type === 'restore' && !isOwn)) this.#calls = new Set()
    if (step.type === 'run-closed') this.isUnheard = this.#state.run.phase === 'submitted'
    if (!isOwn) return
    if (step.type === 'run-closed' && step.end.type !== 'success') this.#calls = undefined
    else if (step.type === 'TOOL_CALL_START') this.#calls?.add(step.toolCallId)
    else if (step.type === 'CUSTOM' && step.name === 'client-tool-ready' && isRecord(step.value))
      this.#calls?.add(String(step.value.toolCallId))
  }

  /** No run was open here yet. */
  get isFirst(): boolean {
    return this.#last === undefined
  }

  /** The last run that was open here belongs to another page. */
  get isForeign(): boolean {
    return this.#last !== undefined && !this.isOwn(this.#last)
  }

  isOwn(runId: string | undefined): boolean {
    return runId !== undefined && (runId === this.#opened || runId === this.former)
  }

  /** A run of this page is open. */
  get isOpen(): boolean {
    const { run } = this.#state
    return run.phase !== 'idle' && this.isOwn(run.runId)
  }

  /** Whether a run that is open on the server is to be rejoined: what was open here is not, unless its stream was lost. */
  isToRejoin(runId: string): boolean {
    const { run } = this.#state
    return runId !== this.#last || (run.phase === 'idle' && Boolean(run.brokenOff))
  }

  made(toolCallId: string): boolean {
    return this.#calls?.has(toolCallId) === true
  }
}
