import type { AnyServerTool, ToolContext, ToolQuestion, ToolReply } from '@countersign/core'
import { byteLength, utf8 } from '../encoding/bytes.js'
import { copyOf } from '../encoding/copy.js'
import { anySignal, untilAborted } from '../encoding/signals.js'
import type { RunObserver } from '../observe/run-observer.js'
import {
  failed,
  isSuccess,
  succeeded,
  type ToolFailure,
  type ToolOutcome,
  toResultContent,
} from '../outcome.js'
import { type Execution, observeCall } from './execution.js'
import { validate } from './schema.js'
import { toldOf } from './tool-errors.js'

export interface ToolRun {
  readonly tool: AnyServerTool
  readonly input: unknown
  readonly context: Omit<ToolContext, 'signal' | 'progress' | 'write' | 'ask'>
  /** Passes on what the tool streams; resolves when there is room for more. Throws if it can't be written as JSON. */
  readonly stream: (data: unknown) => Promise<void>
  /** Passes on what the tool reports without waiting. Throws if it can't be written as JSON. */
  readonly report: (data: unknown) => void
  readonly write: ToolContext['write']
  /** Asks the user. `over` is aborted once the tool has ended or was abandoned. */
  readonly ask: (question: ToolQuestion, over: AbortSignal) => Promise<ToolReply>
  /** Passed to the tool, which is still awaited; combined with `leave` and the tool's own timeout. */
  readonly signal?: AbortSignal | undefined
  /** Once aborted, the tool is abandoned, whatever it does. */
  readonly leave?: AbortSignal | undefined
  /** The maximum bytes of its result in a request. */
  readonly maxSize: number
  readonly observer?: RunObserver | undefined
}

export const NOT_STARTED = 'It was not run: the run was stopped before it started.'

/** Runs one tool once. Never throws. What it reports after its end, or after it was abandoned, is ignored. */
export async function executeTool(run: ToolRun): Promise<Execution> {
  const { tool } = run
  const timeout = tool.timeout === undefined ? undefined : AbortSignal.timeout(tool.timeout)
  const leave = anySignal([run.leave, timeout])
  const signal = anySignal([run.signal, leave])
  if (signal.aborted) return { kind: 'finished', outcome: failed('cancelled', NOT_STARTED, 'aborted') }
  return observeCall(run, () => attempt(run, signal, leave, timeout))
}

async function attempt(
  run: ToolRun,
  signal: AbortSignal,
  leave: AbortSignal,
  timeout: AbortSignal | undefined,
): Promise<Execution> {
  const { tool } = run
  const over = new AbortController()
  try {
    const ended = await untilAborted(() => runOnce(run, signal, over.signal), leave)
    return ended.left
      ? interrupted(timeout?.aborted)
      : { kind: 'finished', outcome: withinLimit(run, ended.value) }
  } catch (error) {
    if (signal.aborted) return interrupted(timeout?.aborted)
    const told = toldOf(error, `tool ${tool.name}`, run.context.toolCallId)
    return { kind: 'threw', error, failure: withinLimit(run, failed('execution_error', told)) }
  } finally {
    over.abort()
  }
}

/** A result that is too long would make every later request of its conversation too large. */
function withinLimit({ tool, maxSize }: ToolRun, outcome: ToolOutcome): ToolOutcome {
  if (!isSuccess(outcome)) return withShortReason(outcome, maxSize)
  // A request contains the content as a string in its own JSON.
  const length = byteLength(JSON.stringify(toResultContent(outcome).content))
  if (length <= maxSize) return outcome
  const reason = `The tool ${tool.name} ran, but its result is not kept: it has ${length} bytes, and at most ${maxSize} are (limits.resultSize).`
  return failed('execution_error', reason, 'result-too-large')
}

/** Minimum limit for the bytes of a reason, however small the limit of results is. */
const SHORT_REASON = 1024

/** Shortens a failure's reason. A message contains it twice, and JSON may need seven bytes per character: hence only a part of the limit. */
function withShortReason(failure: ToolFailure, maxSize: number): ToolFailure {
  const bytes = utf8(failure.reason ?? '')
  const max = Math.max(SHORT_REASON, Math.floor(maxSize / 16))
  if (bytes.length <= max) return failure
  // As a stream, so that a character that is cut in two is dropped.
  const told = new TextDecoder().decode(bytes.subarray(0, max), { stream: true })
  return { ...failure, reason: `${told} [cut: it has ${bytes.length} bytes, and ${max} are told]` }
}

async function runOnce(run: ToolRun, signal: AbortSignal, over: AbortSignal): Promise<ToolOutcome> {
  const progress = (data: unknown) => {
    if (!over.aborted) run.report(data)
  }
  // Not async: what is wrong with a part is thrown at once, also to a tool that does not await it.
  const write: ToolContext['write'] = (part) => (over.aborted ? Promise.resolve() : run.write(part))
  const stops = anySignal([signal, over])
  // The schema of the elicitation returns a value of its own type.
  const ask = (question: ToolQuestion) => run.ask(question, stops) as Promise<ToolReply<never>>
  const value = await run.tool.execute(copyOf(run.input) as never, {
    ...run.context,
    signal,
    progress,
    write,
    ask,
  })
  return isAsyncIterable(value) ? streamed(run, value, over) : answered(run.tool, value)
}

/** Validates the tool's result with its `output`. The tool has run: an invalid result is reported as such, and the tool is not run again. */
async function answered({ name, output }: AnyServerTool, value: unknown): Promise<ToolOutcome> {
  if (output === undefined) return succeeded(value)
  // The call as a whole is left with the run.
  const checked = await validate(output, value, undefined)
  if (checked.ok) return succeeded(checked.value)
  if ('error' in checked) throw checked.error
  const reason = `The tool ${name} ran, but its result does not fit its output schema: ${checked.reason}`
  return failed('execution_error', reason, 'invalid-output')
}

/** Every element is progress; the last is the result, unless the tool builds one with `finalize`. */
async function streamed(
  { tool, stream: handOn }: ToolRun,
  stream: AsyncIterable<unknown>,
  over: AbortSignal,
): Promise<ToolOutcome> {
  const elements: unknown[] = []
  for await (const element of stream) {
    // Nobody waits any more: leaving the loop ends the stream, and so the tool.
    if (over.aborted) return failed('cancelled', 'aborted', 'aborted')
    // Without `finalize`, only the last element is needed.
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
