import type { AGUIEvent } from '@countersign/core'
import { ToolError } from './tool-errors.js'

/**
 * A progress report of a running tool, in the application's own format.
 *
 * @throws ToolError `invalid-argument` if `data` can't be written as JSON.
 */
export function progressEvent(toolCallId: string, toolName: string, data: unknown): AGUIEvent {
  return {
    type: 'CUSTOM',
    name: 'tool-progress',
    value: { toolCallId, toolName, data: reportedData(toolName, data) },
  }
}

/**
 * A copy of a report as JSON, unaffected by later changes. `undefined` becomes `null`.
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
