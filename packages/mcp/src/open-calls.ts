import type { ToolContext } from '@countersign/core'
import type { CallClock } from './call-clock.js'

/** A running call. */
export interface OpenCall {
  readonly context: ToolContext
  readonly clock: CallClock
}

/**
 * The running calls on one connection. MCP does not say which of them an elicitation belongs to, so only if all are of one run is it
 * known whom to ask. The server may still be running an abandoned call, and ask about it later: from then on, only the user who
 * abandoned it is asked on this connection.
 */
export interface OpenCalls {
  during<T>(call: OpenCall, work: () => Promise<T>): Promise<T>
  /** The call that started first, if all are of the same run and user. */
  asking(): OpenCall | undefined
  /** Stops every clock, until the returned function is called. */
  pause(): () => void
}

export function createOpenCalls(): OpenCalls {
  const open = new Set<OpenCall>()
  /** Users who abandoned a call that the server may still be running. With two of them nobody can be asked, so two are enough. */
  const left = new Set<string | undefined>()
  return {
    async during(call, work) {
      open.add(call)
      try {
        return await work()
      } finally {
        open.delete(call)
        if (wasLeft(call) && left.size < 2) left.add(call.context.context.subject)
        call.clock.end()
      }
    },
    asking() {
      const [first, ...others] = open
      if (!first || !others.every((other) => isSameRun(first.context, other.context))) return undefined
      return [...left].every((subject) => subject === first.context.context.subject) ? first : undefined
    },
    pause() {
      const resumes = [...open].map(({ clock }) => clock.pause())
      return () => {
        for (const resume of resumes) resume()
      }
    },
  }
}

/** Whether a call was stopped or timed out. MCP does not tell the client when the server has finished with it. */
function wasLeft({ context: { signal }, clock }: OpenCall): boolean {
  return signal.aborted || clock.signal.aborted
}

/** Without an agent there is no run, and nothing to distinguish calls by. */
function isSameRun(one: ToolContext, other: ToolContext): boolean {
  return (
    one.runId !== undefined &&
    one.runId === other.runId &&
    one.threadId === other.threadId &&
    one.context.subject === other.context.subject
  )
}
