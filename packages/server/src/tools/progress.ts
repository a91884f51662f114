import type { AGUIEvent } from '@countersign/core'
import { ToolError } from './tool-errors.js'

/**
 * What a tool reports while it runs; the application's own.
 *
 * @throws ToolError `invalid-argument` where `data` is no JSON.
 */
export function progressEvent(toolCallId: string, toolName: string, data: unknown): AGUIEvent {
  return {
    type: 'CUSTOM',
    name: 'tool-progress',
    value: { toolCallId, toolName, data: reportedData(toolName, data) },
  }
}

/**
 * A report as JSON, as it is now: what the tool changes afterwards does not change it. `undefined` becomes `null`.
 *
 * @throws ToolError `invalid-argument`
 */
export function reportedData(toolName: string, data: unknown): unknown {
  if (data === undefined) return null
  let text: string | undefined
  let cause: unknown
  try {
    text = JSON.stringify(data)
  } catch (error) {
    cause = error
  }
  if (text !== undefined) return JSON.parse(text)
  throw new ToolError(
    `What the tool ${toolName} reported is no JSON. Report plain values: strings, finite numbers, arrays, objects; no BigInt, function or cycle.`,
    { code: 'invalid-argument', data: { tool: toolName }, cause },
  )
}
