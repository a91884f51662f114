import { CountersignError } from '../errors.js'

/**
 * The error for a stream that breaks AG-UI: `malformed-event` for a wrong value in a known field, `protocol-violation` for
 * events in an impossible order, `truncated-stream` for an end without a terminal event. `where` begins with the event's type.
 */
export function violation(
  code: 'malformed-event' | 'protocol-violation' | 'truncated-stream',
  where: string,
  rule: string,
): CountersignError {
  const message = `Invalid AG-UI 1.0 stream, ${where}: ${rule}. For an older server pass compat`
  return new CountersignError(code, message, { where, rule })
}
