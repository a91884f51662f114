const types: ReadonlySet<string> = new Set([
  'TEXT_MESSAGE_CONTENT',
  'TOOL_CALL_ARGS',
  'REASONING_MESSAGE_CONTENT',
])

/** Whether a step only adds to a text or to arguments that are open. */
export function isGrowth(step: { readonly type: string }): boolean {
  return types.has(step.type)
}
