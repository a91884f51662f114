import {
  type CountersignError,
  isCountersignError,
  type RunEnd,
  resumeEntries,
  type ToolMap,
} from '@countersign/core'
import type { Answered } from './results.js'
import type { Run } from './run.js'
import type { Session } from './session.js'

/** Milliseconds until an answer is sent once more, at first and at most. */
const FIRST_WAIT_MS = 500
const LAST_WAIT_MS = 10_000

/** Answers on their way into the open run, over a connection that has a way to. */
export function createLiveChannel<Tools extends ToolMap>(
  session: Session<Tools>,
  runner: { isOpen(run: Run): boolean; check(): void },
) {
  const { state, dispatch } = session
  /** The channel broke under them: nobody knows whether the server has them, and the end of the run decides. */
  const lost = new Set<Answered>()
  /** Those that the channel has not confirmed. */
  const unsure = new WeakSet<Answered>()

  /** Once more where nobody knows, as long as the run is open: it may wait for this answer, and takes it once. */
  async function deliver(run: Run, call: Answered, send: () => Promise<void>): Promise<void> {
    for (let wait = FIRST_WAIT_MS; ; wait = Math.min(2 * wait, LAST_WAIT_MS)) {
      try {
        await send()
        lost.delete(call)
        unsure.delete(call)
        return
      } catch (cause) {
        if (!runner.isOpen(run)) return wait === FIRST_WAIT_MS ? tooLate(run, call) : undefined
        if (isRefused(cause)) {
          lost.delete(call)
          return isUnheard(cause) ? giveUp(run, call, cause) : markDelivered(run, call)
        }
        lost.add(call)
      }
      await endOrTime(run, wait)
      if (!runner.isOpen(run)) return
    }
  }

  /** Too late to be sure for a run that broke or was stopped: its end has said what is known. */
  function tooLate(run: Run, call: Answered): void {
    void run.done.then((end) => {
      if (end.type === 'success') markDelivered(run, call)
    })
  }

  function markDelivered(run: Run, call: Answered): void {
    takeBack(run, call)
    runner.check()
  }

  /** The run would wait for the answer for ever: it ends with the reason, which is told for the answer too. The next request takes it. */
  function giveUp(run: Run, call: Answered, error: CountersignError): void {
    takeBack(run, call)
    run.carried.add(call)
    run.end({ type: 'failed', error })
  }

  function takeBack(run: Run, call: Answered): void {
    run.carried.delete(call)
    const approvalId = idIn(run, call)
    if (approvalId !== undefined) dispatch({ type: 'answer-returned', approvalId })
  }

  /** Sends an answer into the run. Gives whether it is on its way: what is not goes out as it would over any connection. */
  function send(run: Run, answered: Answered): boolean {
    const { connection } = run
    const { headers } = session
    const approvalId = idIn(run, answered)
    if (!connection.answer || state.run.phase !== 'streaming') return false
    const resume = resumeEntries(state, false, run.id).filter(({ interruptId }) => interruptId === approvalId)
    if (approvalId === undefined || resume.length === 0) return false
    dispatch({ type: 'answer-sent', approvalId })
    run.carried.add(answered)
    unsure.add(answered)
    const answer = connection.answer.bind(connection)
    void deliver(run, answered, () =>
      answer({ threadId: session.threadId, runId: run.id, resume }, { signal: run.signal, headers }),
    )
    return true
  }

  return {
    unsure,
    send,

    /** The run takes answers now: those that were given before it did go into it, or it would wait for them, and they for its end. */
    sendKept(run: Run): void {
      for (const answered of [...state.unsent]) send(run, answered)
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

/** The id by which a run that is open takes an answer; a question that a run ended with is none of its. */
function idIn(run: Run, answered: Answered): string | undefined {
  if (answered.kind === 'call') return answered.approval?.id
  return answered.liveIn === run.id ? answered.interrupt.id : undefined
}

/** Resolves after so many milliseconds, or when the run is over. */
function endOrTime({ done }: Run, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    void done.then(() => {
      clearTimeout(timer)
      resolve()
    })
  })
}

/** Whether the run certainly will not take the answer. A server that cannot look now may take it when it is asked again. */
function isRefused(cause: unknown): cause is CountersignError {
  return (
    isCountersignError(cause) && cause.code !== 'connection-failed' && cause.code !== 'ledger-unavailable'
  )
}

/** Refused by what stands before the run (a sign-in, an origin check, a wrong address). A run that will not have it says 409. */
function isUnheard({ code, data }: CountersignError): boolean {
  return code === 'not-an-event-stream' || (code === 'http-status' && data.status !== 409)
}
