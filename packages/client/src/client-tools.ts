import { type AnyClientTool, CountersignError, type ToolOutput } from '@countersign/core'

/** Runs one client tool. Whatever goes wrong is its result: a tool never breaks the chat. */
export async function runClientTool(
  tool: AnyClientTool,
  input: unknown,
  context: { readonly toolCallId: string; readonly signal: AbortSignal },
): Promise<ToolOutput> {
  try {
    const checked = await tool.input['~standard'].validate(input)
    if (checked.issues) throw new CountersignError('tool-failed', describe(tool.name, checked.issues))
    // Stopped while the arguments were checked: it does not start any more.
    context.signal.throwIfAborted()
    // The schema has just said that this is the tool's own input type.
    const output: unknown = await tool.execute(checked.value as never, context)
    return { output: output === undefined ? null : output }
  } catch (error) {
    return { error: { message: error instanceof Error ? error.message : String(error) } }
  }
}

function describe(
  name: string,
  issues: readonly { readonly message: string; readonly path?: readonly unknown[] | undefined }[],
): string {
  const list = issues.map(({ path, message }) =>
    path?.length ? `${path.map(key).join('.')}: ${message}` : message,
  )
  return `The arguments of "${name}" are not valid: ${list.join('; ')}`
}

function key(segment: unknown): string {
  return String(typeof segment === 'object' && segment !== null && 'key' in segment ? segment.key : segment)
}
