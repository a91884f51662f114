import { type AGUIEvent, CountersignError } from '@countersign/core'

/**
 * What a tool reports while it runs; the application's own.
 *
 * @throws CountersignError `invalid-argument` where `data` is no JSON.
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
 * @throws CountersignError `invalid-argument`
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
  const why = cause instanceof Error ? (cause.message.split('\n')[0] ?? '') : `a ${typeof data}`
  throw new CountersignError(
    'invalid-argument',
    `What the tool ${toolName} reported is no JSON (${why}). Report plain values: strings, numbers, arrays, objects.`,
    { tool: toolName },
    cause,
  )
}
