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

export function reportedData(tool: string, data: unknown): unknown {
  return jsonCopy(data, `What the tool ${tool} reported`, { tool })
}

/**
 * A copy as JSON, unaffected by later changes. `undefined` becomes `null`. `what` names it in the error.
 *
 * @throws ToolError `invalid-argument`
 */
export function jsonCopy(
  value: unknown,
  what: string,
  data: Readonly<Record<string, unknown>> = {},
): unknown {
  if (value === undefined) return null
  let text: string | undefined
  let cause: unknown
  try {
    text = JSON.stringify(value)
  } catch (error) {
    cause = error
  }
  if (text !== undefined) return JSON.parse(text)
  throw new ToolError(
    `${what} is no JSON. Use plain values: strings, finite numbers, arrays, objects; no BigInt, function or cycle.`,
    { code: 'invalid-argument', data, cause },
  )
}
