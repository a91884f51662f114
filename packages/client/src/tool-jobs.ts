import {
  type AnyClientTool,
  type CallDraft,
  clientCalls,
  executingCalls,
  interrupted,
  type ToolMap,
  type ToolOutput,
} from '@countersign/core'
import { runClientTool } from './client-tools.js'
import type { KeptThread } from './persistence/persistence.js'
import { type Session, unsafeCast } from './session.js'

/** A call that is left to this client, and the tool that answers it. */
interface ToolJob {
  readonly call: Pick<CallDraft, 'id' | 'name' | 'input'>
  readonly tool: AnyClientTool
  /** Aborted when pending work is voided: the result of the job is dropped. */
  readonly signal: AbortSignal
}

const notStored: ToolOutput = {
  error: {
    message: 'It was not run, because that could not be stored.',
    code: 'not-stored',
  },
}

/** Client tools: claims the calls that a run has left to this client, runs them, and adds their results. */
export function createToolJobs<Tools extends ToolMap>(
  session: Session<Tools>,
  kept: KeptThread | undefined,
  /** Called with each result, before a listener sees it. */
  added: () => void,
  /** Called once listeners have seen it. */
  done: () => void,
) {
  const { state, dispatch } = session
  const handedOver = new WeakSet<CallDraft>()
  let voiding = new AbortController()

  /** The application answers it. Called once for each call, when listeners have been notified. */
  function handOver(call: ToolJob['call']): void {
    const draft = state.calls.get(call.id)
    if (!draft || handedOver.has(draft)) return
    handedOver.add(draft)
    const { signal } = voiding
    queueMicrotask(() => {
      if (!signal.aborted) session.callBack(() => session.options.onToolCall?.(unsafeCast(call)))
    })
  }

  async function runJob({ call, tool, signal }: ToolJob): Promise<void> {
    // A listener may have stopped the chat at the end of the run, and `onToolCall` may stop it now.
    if (signal.aborted) return
    session.callBack(() => session.options.onToolCall?.(unsafeCast(call)))
    // Stored before it runs, so that no reload runs it a second time.
    const stored = !kept || (await kept.keep())
    if (signal.aborted) return
    const context = { toolCallId: call.id, signal, context: session.options.toolContext }
    const result = stored ? await runClientTool(tool, call.input, context) : notStored
    if (signal.aborted) return
    // Batched, as for an answer of the user: no listener sees the state between the result and its request.
    session.store.batch(() => {
      giveOutput(call.id, result)
      added()
    })
    done()
  }

  function giveOutput(toolCallId: string, result: ToolOutput): void {
    dispatch({ type: 'tool-output', toolCallId, messageId: session.newId(), ...result })
  }

  return {
    /** Client tools start when their run has finished, never before. */
    claim(isRetry?: boolean): readonly ToolJob[] {
      return clientCalls(state).flatMap((call) => {
        if (!isRetry && kept?.isElsewhere?.(call.id)) return []
        const tool = session.options.tools?.find(({ name }) => name === call.name)
        if (!tool) {
          handOver(call)
          return []
        }
        dispatch({ type: 'tool-started', toolCallId: call.id })
        return [{ call, tool, signal: voiding.signal }]
      })
    },

    /** In parallel, except calls with the same id: only the order tells their outputs apart. */
    run(jobs: readonly ToolJob[]): void {
      const running = new Map<string, Promise<void>>()
      for (const job of jobs) {
        const work = () => runJob(job)
        const { id } = job.call
        running.set(id, running.get(id)?.then(work) ?? work())
      }
    },

    /** Abandons what runs, and adds what is known of it. */
    giveUp(): void {
      voiding.abort()
      voiding = new AbortController()
      for (const { id } of executingCalls(state)) giveOutput(id, { error: interrupted })
    },
  }
}
