const types: ReadonlySet<string> = new Set([
  'TEXT_MESSAGE_CONTENT',
  'TOOL_CALL_ARGS',
  'REASONING_MESSAGE_CONTENT',
])

/** Whether a step only appends to an open text or to open arguments. */
export function isGrowth(step: { readonly type: string }): boolean {
  return types.has(step.type)
}
