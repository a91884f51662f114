import { CountersignError, isRecord, type ServerFrame } from '@countersign/core'

/**
 * Parses one message. Returns `undefined` for an unknown type, which a later version may have added. @throws
 * CountersignError `malformed-event` or `event-too-large`.
 */
export function readFrame(data: unknown, limit: number): ServerFrame | undefined {
  if (typeof data !== 'string') throw malformed('a binary message')
  if (data.length > limit) {
    const message = `A message is longer than ${limit} characters. Send less in one message, or raise maxEventBytes.`
    throw new CountersignError('event-too-large', message, { limit })
  }
  const frame = parse(data)
  if (!isRecord(frame)) throw malformed(data)
  const { type, runId, id, events, status, code, message } = frame
  switch (type) {
    case 'events':
      if (typeof runId !== 'string' || !Array.isArray(events)) throw malformed(data)
      return { type, runId, events, ...(typeof id === 'string' && { id }) }
    case 'end':
      if (typeof runId !== 'string') throw malformed(data)
      return { type, runId }
    case 'answered':
      if (typeof id !== 'string') throw malformed(data)
      return { type, id }
    case 'refused':
      if (typeof id !== 'string') throw malformed(data)
      return { type, id, ...problem(code, message) }
    case 'error':
      if (runId !== undefined && typeof runId !== 'string') throw malformed(data)
      return {
        type,
        ...(runId !== undefined && { runId }),
        ...(typeof status === 'number' && { status }),
        ...problem(code, message),
      }
    default:
      // An event of AG-UI as it is, such as RUN_STARTED: what is sent here is wrapped.
      if (typeof type !== 'string' || /^[A-Z_]+$/.test(type)) throw malformed(data)
      return undefined
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (cause) {
    throw malformed(text, cause)
  }
}

function problem(code: unknown, message: unknown): { code: string; message: string } {
  return {
    code: typeof code === 'string' ? code : 'unknown',
    message: typeof message === 'string' ? message : 'The server gave no reason.',
  }
}

function malformed(data: string, cause?: unknown): CountersignError {
  const text = data.slice(0, 200)
  const message = `The socket brought what is no frame of a chat: ${text}. Check that the URL is the chat endpoint.`
  return new CountersignError('malformed-event', message, { text }, cause)
}
