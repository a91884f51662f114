import { type AnyServerTool, failed, succeeded, type ToolContext, type ToolOutcome } from '@countersign/core'

/** How running a tool ended. */
export type Execution =
  | { readonly kind: 'finished'; readonly outcome: ToolOutcome }
  /** Aborted or timed out after its start: it may or may not have had an effect. */
  | { readonly kind: 'interrupted'; readonly reason: string }
  /** It threw; `failure` is what a model would be told. */
  | { readonly kind: 'threw'; readonly error: unknown; readonly failure: ToolOutcome }

/** One call, ready to run. */
export interface ToolRun {
  readonly tool: AnyServerTool
  /** Validated. */
  readonly input: unknown
  readonly context: Omit<ToolContext, 'signal'>
  /** Reaches the tool; together with the tool's own timeout. */
  readonly signal?: AbortSignal | undefined
  /** `wait` for a tool that was aborted to end by itself, or `leave` it. A timeout always leaves. */
  readonly onAbort: 'wait' | 'leave'
}

/** Runs one tool once. Never throws. */
export async function executeTool(run: ToolRun): Promise<Execution> {
  const { tool, input, context, onAbort } = run
  const timeout = tool.timeout === undefined ? undefined : AbortSignal.timeout(tool.timeout)
  const given = [run.signal, timeout].filter((signal) => signal !== undefined)
  const signal = AbortSignal.any(given)
  if (run.signal?.aborted) return { kind: 'finished', outcome: failed('cancelled', 'aborted', 'aborted') }
  const left = onAbort === 'leave' ? signal : timeout
  try {
    const value = await untilAborted(async () => tool.execute(input as never, { ...context, signal }), left)
    return value.left ? interrupted(timeout?.aborted) : { kind: 'finished', outcome: succeeded(value.value) }
  } catch (error) {
    if (signal.aborted) return interrupted(timeout?.aborted)
    return { kind: 'threw', error, failure: failed('execution_error', describe(error)) }
  }
}

function interrupted(timedOut = false): Execution {
  const why = timedOut ? 'It took too long and was aborted' : 'It was aborted'
  return { kind: 'interrupted', reason: `${why}; it may or may not have had an effect.` }
}

async function untilAborted<T>(
  start: () => Promise<T>,
  signal: AbortSignal | undefined,
): Promise<{ readonly left: false; readonly value: T } | { readonly left: true }> {
  const work = start().then((value) => ({ left: false, value }) as const)
  if (signal === undefined) return work
  let leave = () => {}
  const left = new Promise<{ readonly left: true }>((resolve) => {
    leave = () => resolve({ left: true })
    signal.addEventListener('abort', leave, { once: true })
  })
  try {
    return await Promise.race([work, left])
  } finally {
    signal.removeEventListener('abort', leave)
  }
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
