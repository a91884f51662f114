import {
  type CountersignError,
  isCountersignError,
  type RequestOptions,
  resumeEntries,
  type ToolMap,
} from '@countersign/core'
import type { Answered } from './results.js'
import type { Run } from './run.js'
import type { Session } from './session.js'

/** Milliseconds until an answer is sent again: the first delay and the longest. */
const FIRST_WAIT_MS = 500
const LAST_WAIT_MS = 10_000

/** Delivers answers into the open run, if its connection supports it. */
export function createLiveChannel<Tools extends ToolMap>(
  session: Session<Tools>,
  runner: {
    isOpen(run: Run): boolean
    check(): void
    optionsOf(answered: Answered): RequestOptions | undefined
  },
) {
  const { state, dispatch } = session
  /** Retries while the delivery is unknown and the run is open: the run may wait for this answer, and accepts it only once. */
  async function deliver(run: Run, call: Answered, send: () => Promise<void>): Promise<void> {
    // After the run has ended, its end has decided.
    for (let wait = FIRST_WAIT_MS; runner.isOpen(run); wait = Math.min(2 * wait, LAST_WAIT_MS)) {
      try {
        await send()
        run.unsure.delete(call)
        return
      } catch (cause) {
        if (runner.isOpen(run) && isRefused(cause))
          return neverReachedRun(cause) ? giveUp(run, call, cause) : goLater(run, call)
      }
      await endOrTime(run, wait)
    }
  }

  /** The run does not have the answer: the next request carries it. */
  function goLater(run: Run, call: Answered): void {
    takeBack(run, call)
    runner.check()
  }

  /** The run would wait forever, so it ends with the error, which is also the answer's result. The next request carries the answer. */
  function giveUp(run: Run, call: Answered, error: CountersignError): void {
    takeBack(run, call)
    run.carried.add(call)
    run.end({ type: 'failed', error })
  }

  /** If the answer took effect after all, it stays with the run, whose end resolves it. */
  function takeBack(run: Run, call: Answered): void {
    const approvalId = idIn(run, call)
    if (approvalId !== undefined) dispatch({ type: 'answer-returned', approvalId })
    if (state.unsent.has(call)) run.carried.delete(call)
  }

  /** Sends an answer into the run. Returns whether it did; if not, the answer is sent as over any connection. */
  function send(run: Run, answered: Answered): boolean {
    const { connection } = run
    const headers = { ...session.headers, ...runner.optionsOf(answered)?.headers }
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
     * The run accepts answers now. Those given earlier are delivered into it; otherwise the run and the answers
     * would wait for each other. So are those in transit when its stream broke: it is unknown whether they arrived.
     */
    sendKept(run: Run): void {
      for (const answered of run.unsure) takeBack(run, answered)
      for (const answered of [...state.unsent]) send(run, answered)
    },

    /** The run ended well. Unconfirmed answers are sent with the next request, unless they took effect. */
    settle(run: Run): void {
      for (const call of run.unsure) goLater(run, call)
    },
  }
}

/** The id under which an open run accepts an answer; `undefined` for an interrupt of another or a finished run. */
function idIn(run: Run, answered: Answered): string | undefined {
  if (answered.kind === 'call') return answered.approval?.id
  return answered.liveIn === run.id ? answered.interrupt.id : undefined
}

/** Resolves after that many milliseconds, or when the run has ended. */
function endOrTime({ done }: Run, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    void done.then(() => {
      clearTimeout(timer)
      resolve()
    })
  })
}

/** Whether the run will certainly not accept the answer. A server whose ledger is unavailable may accept it later. */
function isRefused(cause: unknown): cause is CountersignError {
  return (
    isCountersignError(cause) && cause.code !== 'connection-failed' && cause.code !== 'ledger-unavailable'
  )
}

/** Refused before it reached the run (a sign-in, an origin check, a wrong URL). A run that refuses it responds with 409. */
function neverReachedRun({ code, data }: CountersignError): boolean {
  return code === 'not-an-event-stream' || (code === 'http-status' && data.status !== 409)
}
