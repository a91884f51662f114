import {
  type CallCell,
  isCountersignError,
  type RunEnd,
  resumeEntries,
  type ToolMap,
} from '@countersign/core'
import type { Answered } from './results.js'
import type { Run } from './run.js'
import type { Session } from './session.js'

/** Answers on their way into the open run, over a connection that has a way to. */
export class LiveChannel<Tools extends ToolMap> {
  /** The channel broke under them: nobody knows whether the server has them, and the end of the run decides. */
  readonly #lost = new Set<CallCell>()
  readonly #session: Session<Tools>
  readonly #runner: { readonly run: Run | undefined; check(): void }

  constructor(session: Session<Tools>, runner: { readonly run: Run | undefined; check(): void }) {
    this.#session = session
    this.#runner = runner
  }

  /** Sends an answer into the run. Gives whether it is on its way: what is not goes out as it would over any connection. */
  send(run: Run, answered: Answered): boolean {
    const { state, threadId, options } = this.#session
    const { connection, headers = {} } = options
    if (!connection.answer || answered.kind !== 'call' || state.run.phase !== 'streaming') return false
    const approvalId = answered.approval?.id
    const resume = resumeEntries(state, false).filter(({ interruptId }) => interruptId === approvalId)
    if (approvalId === undefined || resume.length === 0) return false
    this.#session.dispatch({ type: 'answer-sent', approvalId })
    run.carried.add(answered)
    connection
      .answer({ threadId, runId: run.id, resume }, { signal: run.signal, headers })
      .catch((cause: unknown) => this.#undelivered(run, answered, cause))
    return true
  }

  /** The run is over. What was lost in one that ended well goes out with the next; in another it shares the fate of the run. */
  settle(run: Run, end: RunEnd): boolean {
    const lost = [...this.#lost]
    this.#lost.clear()
    if (end.type !== 'success') return false
    for (const call of lost) this.#takeBack(run, call)
    return lost.length > 0
  }

  #undelivered(run: Run, call: CallCell, cause: unknown): void {
    if (this.#runner.run !== run) {
      // Too late to be sure for a run that broke or was stopped: its end has said what is known.
      void run.done.then((end) => {
        if (end.type === 'success') this.#goOn(run, call)
      })
    } else if (isRefused(cause)) this.#goOn(run, call)
    else this.#lost.add(call)
  }

  #goOn(run: Run, call: CallCell): void {
    this.#takeBack(run, call)
    this.#runner.check()
  }

  #takeBack(run: Run, call: CallCell): void {
    run.carried.delete(call)
    if (call.approval) this.#session.dispatch({ type: 'answer-returned', approvalId: call.approval.id })
  }
}

/** Whether the server certainly does not have the answer. */
function isRefused(cause: unknown): boolean {
  return isCountersignError(cause) && cause.code !== 'connection-failed'
}
