import { type CountersignError, isCountersignError, resumeEntries, type ToolMap } from '@countersign/core'
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
  /** Once more where nobody knows, as long as the run is open: it may wait for this answer, and takes it once. */
  async function deliver(run: Run, call: Answered, send: () => Promise<void>): Promise<void> {
    // once it is over, its end has said what is known
    for (let wait = FIRST_WAIT_MS; runner.isOpen(run); wait = Math.min(2 * wait, LAST_WAIT_MS)) {
      try {
        await send()
        run.unsure.delete(call)
        return
      } catch (cause) {
        if (runner.isOpen(run) && isRefused(cause))
          return isUnheard(cause) ? giveUp(run, call, cause) : goLater(run, call)
      }
      await endOrTime(run, wait)
    }
  }

  /** The run does not have it: it goes out with the next request. */
  function goLater(run: Run, call: Answered): void {
    takeBack(run, call)
    runner.check()
  }

  /** The run would wait for the answer for ever: it ends with the reason, which is told for the answer too. The next request takes it. */
  function giveUp(run: Run, call: Answered, error: CountersignError): void {
    takeBack(run, call)
    run.carried.add(call)
    run.end({ type: 'failed', error })
  }

  /** One that took effect nevertheless stays with the run, whose end tells its giver so. */
  function takeBack(run: Run, call: Answered): void {
    const approvalId = idIn(run, call)
    if (approvalId !== undefined) dispatch({ type: 'answer-returned', approvalId })
    if (state.unsent.has(call)) run.carried.delete(call)
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
    run.unsure.add(answered)
    const answer = connection.answer.bind(connection)
    void deliver(run, answered, () =>
      answer({ threadId: session.threadId, runId: run.id, resume }, { signal: run.signal, headers }),
    )
    return true
  }

  return {
    send,

    /**
     * The run takes answers now: those that were given before it did go into it, or it would wait for them, and they for its end. So do those
     * that were on their way into it when its stream broke: nobody knows whether they arrived.
     */
    sendKept(run: Run): void {
      for (const answered of run.unsure) takeBack(run, answered)
      for (const answered of [...state.unsent]) send(run, answered)
    },

    /** The run ended well. What it was not known to have goes out with the next request, unless it took effect. */
    settle(run: Run): void {
      for (const call of run.unsure) goLater(run, call)
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
