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
export function createLiveChannel<Tools extends ToolMap>(
  session: Session<Tools>,
  runner: { isOpen(run: Run): boolean; check(): void },
) {
  const { state, dispatch, threadId } = session
  /** The channel broke under them: nobody knows whether the server has them, and the end of the run decides. */
  const lost = new Set<CallCell>()

  function undelivered(run: Run, call: CallCell, cause: unknown): void {
    if (!runner.isOpen(run)) {
      // Too late to be sure for a run that broke or was stopped: its end has said what is known.
      void run.done.then((end) => {
        if (end.type === 'success') goOn(run, call)
      })
    } else if (isRefused(cause)) goOn(run, call)
    else lost.add(call)
  }

  function goOn(run: Run, call: CallCell): void {
    takeBack(run, call)
    runner.check()
  }

  function takeBack(run: Run, call: CallCell): void {
    run.carried.delete(call)
    if (call.approval) dispatch({ type: 'answer-returned', approvalId: call.approval.id })
  }

  return {
    /** Sends an answer into the run. Gives whether it is on its way: what is not goes out as it would over any connection. */
    send(run: Run, answered: Answered): boolean {
      const { connection, headers = {} } = session.options
      if (!connection.answer || answered.kind !== 'call' || state.run.phase !== 'streaming') return false
      const approvalId = answered.approval?.id
      const resume = resumeEntries(state, false).filter(({ interruptId }) => interruptId === approvalId)
      if (approvalId === undefined || resume.length === 0) return false
      dispatch({ type: 'answer-sent', approvalId })
      run.carried.add(answered)
      connection
        .answer({ threadId, runId: run.id, resume }, { signal: run.signal, headers })
        .catch((cause: unknown) => undelivered(run, answered, cause))
      return true
    },

    /** The run is over. What was lost in one that ended well goes out with the next; in another it shares the fate of the run. */
    settle(run: Run, end: RunEnd): boolean {
      const calls = end.type === 'success' ? [...lost] : []
      lost.clear()
      for (const call of calls) takeBack(run, call)
      return calls.length > 0
    },
  }
}

/** Whether the server certainly does not have the answer. */
function isRefused(cause: unknown): boolean {
  return isCountersignError(cause) && cause.code !== 'connection-failed'
}
