import type { AnyServerTool, ToolContext, ToolQuestion, ToolReply } from '@countersign/core'
import { copyOf } from '../encoding/copy.js'
import { anySignal } from '../encoding/signals.js'
import {
  failed,
  isSuccess,
  succeeded,
  type ToolFailure,
  type ToolOutcome,
  toResultContent,
} from '../outcome.js'
import { validate } from './schema.js'
import { toldOf } from './tool-errors.js'

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
  readonly context: Omit<ToolContext, 'signal' | 'progress' | 'ask'>
  /** Hands on what the tool streams; resolves when there is room for more. Throws where it is no JSON. */
  readonly stream: (data: unknown) => Promise<void>
  /** Hands on what the tool reports and does not wait for. Throws where it is no JSON. */
  readonly report: (data: unknown) => void
  /** Asks the person. `over` is aborted once the tool has ended or was left. */
  readonly ask: (question: ToolQuestion, over: AbortSignal) => Promise<ToolReply>
  /** Reaches the tool, which is still waited for; together with `leave` and the tool's own timeout. */
  readonly signal?: AbortSignal | undefined
  /** Once it is aborted the tool is left, whatever it does. */
  readonly leave?: AbortSignal | undefined
  /** Bytes that its result may have in a request. */
  readonly maxSize: number
}

export const NOT_STARTED = 'It was not run: the run was stopped before it started.'

/** Runs one tool once. Never throws. What it reports after its end, or after it was left, is not heard any more. */
export async function executeTool(run: ToolRun): Promise<Execution> {
  const { tool } = run
  const timeout = tool.timeout === undefined ? undefined : AbortSignal.timeout(tool.timeout)
  const leave = anySignal([run.leave, timeout])
  const signal = anySignal([run.signal, leave])
  if (signal.aborted) return { kind: 'finished', outcome: failed('cancelled', NOT_STARTED, 'aborted') }
  const over = new AbortController()
  try {
    const ended = await untilAborted(() => runOnce(run, signal, over.signal), leave)
    return ended.left
      ? interrupted(timeout?.aborted)
      : { kind: 'finished', outcome: withinLimit(run, ended.value) }
  } catch (error) {
    if (signal.aborted) return interrupted(timeout?.aborted)
    const told = toldOf(error, tool.name, run.context.toolCallId)
    return { kind: 'threw', error, failure: withinLimit(run, failed('execution_error', told)) }
  } finally {
    over.abort()
  }
}

const utf8 = new TextEncoder()

/** One that is too long would make every later request of its conversation too large. */
function withinLimit({ tool, maxSize }: ToolRun, outcome: ToolOutcome): ToolOutcome {
  if (!isSuccess(outcome)) return withShortReason(outcome, maxSize)
  // a request has the content as a string in its own JSON
  const { length } = utf8.encode(JSON.stringify(toResultContent(outcome).content))
  if (length <= maxSize) return outcome
  const reason = `The tool ${tool.name} ran, but its result is not kept: it has ${length} bytes, and at most ${maxSize} are (limits.resultSize).`
  return failed('execution_error', reason, 'result-too-large')
}

/** Bytes of a reason that are told, however small the limit of results is. */
const SHORT_REASON = 1024

/** A failure stays what it is. A message has its reason twice, and JSON may write a character in seven bytes: so it gets a part of the limit. */
function withShortReason(failure: ToolFailure, maxSize: number): ToolFailure {
  const bytes = utf8.encode(failure.reason)
  const max = Math.max(SHORT_REASON, Math.floor(maxSize / 16))
  if (bytes.length <= max) return failure
  // as a stream, so that a character that is cut in two is left out
  const told = new TextDecoder().decode(bytes.subarray(0, max), { stream: true })
  return { ...failure, reason: `${told} [cut: it has ${bytes.length} bytes, and ${max} are told]` }
}

/** What a model is told of an execution. */
export function outcomeOf(execution: Execution): ToolOutcome {
  switch (execution.kind) {
    case 'finished':
      return execution.outcome
    case 'interrupted':
      return failed('execution_error', execution.reason, 'interrupted')
    case 'threw':
      return execution.failure
    default:
      return execution satisfies never
  }
}

async function runOnce(run: ToolRun, signal: AbortSignal, over: AbortSignal): Promise<ToolOutcome> {
  const progress = (data: unknown) => {
    if (!over.aborted) run.report(data)
  }
  const stops = anySignal([signal, over])
  // what the question's schema made of an answer is of the schema's type
  const ask = (question: ToolQuestion) => run.ask(question, stops) as Promise<ToolReply<never>>
  const value = await run.tool.execute(copyOf(run.input) as never, { ...run.context, signal, progress, ask })
  return isAsyncIterable(value) ? streamed(run, value, over) : answered(run.tool, value)
}

/** What the tool's `output` makes of what it answered. It has run: what does not fit is told as that, and is not run again. */
async function answered({ name, output }: AnyServerTool, value: unknown): Promise<ToolOutcome> {
  if (output === undefined) return succeeded(value)
  const checked = await validate(output, value)
  if (checked.ok) return succeeded(checked.value)
  if ('error' in checked) throw checked.error
  const reason = `The tool ${name} ran, but its result does not fit its output schema: ${checked.reason}`
  return failed('execution_error', reason, 'invalid-output')
}

/** Every element is progress; the last is the result, unless the tool builds it from all of them. */
async function streamed(
  { tool, stream: handOn }: ToolRun,
  stream: AsyncIterable<unknown>,
  over: AbortSignal,
): Promise<ToolOutcome> {
  const elements: unknown[] = []
  for await (const element of stream) {
    // nobody waits any more: to leave the loop ends the stream, and so the tool
    if (over.aborted) return failed('cancelled', 'aborted', 'aborted')
    // without `finalize` only the last one is needed
    if (tool.finalize === undefined) elements.pop()
    elements.push(element)
    await handOn(element)
  }
  const value = tool.finalize === undefined ? elements.at(-1) : await tool.finalize(elements as never[])
  return value === undefined
    ? failed('execution_error', `The tool ${tool.name} ended without a result.`)
    : answered(tool, value)
}

function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value
}

function interrupted(timedOut = false): Execution {
  const why = timedOut ? 'It took too long and was aborted' : 'It was aborted'
  return { kind: 'interrupted', reason: `${why}; it may or may not have had an effect.` }
}

async function untilAborted<T>(
  start: () => Promise<T>,
  signal: AbortSignal,
): Promise<{ readonly left: false; readonly value: T } | { readonly left: true }> {
  const work = start().then((value) => ({ left: false, value }) as const)
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
