import {
  type AnyClientTool,
  type ClientToolContext,
  CountersignError,
  isRecord,
  type ToolOutput,
} from '@countersign/core'
import { copyJson } from './json.js'

/** Runs one client tool. Any error becomes its result: a tool never breaks the chat. */
export async function runClientTool(
  tool: AnyClientTool,
  input: unknown,
  context: ClientToolContext,
): Promise<ToolOutput> {
  try {
    const args = await validate(tool.input, input, `The arguments of "${tool.name}" are not valid`)
    // Stopped during validation: it must not start any more.
    if (context.signal.aborted) throw context.signal.reason
    // The schema has just validated it as the tool's own input type.
    const given: unknown = await tool.execute(args as never, context)
    const output = tool.output
      ? await validate(tool.output, given, `The result of "${tool.name}" is not valid`)
      : given
    const { value = null, fault } = copyJson(output)
    if (fault !== undefined)
      throw new CountersignError('tool-failed', `The result of "${tool.name}": ${fault}`)
    return { output: value }
  } catch (error) {
    // Truncated for readability; a longer message could make every later request too large.
    return { error: { message: messageOf(error).slice(0, 10_000) } }
  }
}

/** Anything can be thrown, also what is no text and cannot be made one. */
function messageOf(error: unknown): string {
  try {
    return String(error instanceof Error ? error.message : error)
  } catch {
    return 'The tool failed with an error that has no text.'
  }
}

/** What is wrong with a value, and in which of its fields: the keys on the way to it, none for the whole value. */
export interface FieldIssue {
  readonly path: readonly string[]
  readonly message: string
}

export function inWords(issues: readonly FieldIssue[]): string {
  return issues
    .map(({ path, message }) => (path.length > 0 ? `${path.join('.')}: ${message}` : message))
    .join('; ')
}

/** The issues that a schema has with a value; `undefined` if there are none, or if it checks asynchronously. */
export function issuesOf(
  checked: ReturnType<AnyClientTool['input']['~standard']['validate']> | undefined,
): readonly FieldIssue[] | undefined {
  const issues: unknown = isRecord(checked) ? checked.issues : undefined
  if (!issues) return undefined
  // No schema library made it, if it is malformed: that it objects counts all the same.
  return [issues].flat().map((issue) => {
    const { path, message = 'It is not valid.' } = isRecord(issue) ? issue : {}
    const steps = Array.isArray(path) ? path : []
    return { path: steps.map((step) => String(isRecord(step) ? step.key : step)), message: String(message) }
  })
}

/** Returns the schema's output. Throws with all issues if the value does not fit. */
async function validate(schema: AnyClientTool['input'], value: unknown, problem: string): Promise<unknown> {
  const checked = await schema['~standard'].validate(value)
  if (!checked.issues) return checked.value
  throw new CountersignError('tool-failed', `${problem}: ${inWords(issuesOf(checked) ?? [])}`)
}
