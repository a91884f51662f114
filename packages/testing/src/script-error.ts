import type { ChatSnapshot } from '@countersign/client'

/** The script ended before the test did: it has nothing to send where the chat, or the test, expects more. */
export class ScriptError extends Error {
  override readonly name = 'ScriptError'

  constructor(reason: string, timeline: string) {
    super(`${BEGINNING}${reason}.\n${timeline}`)
  }
}

const BEGINNING = 'The script ended too early: '

/** What the scripted server said if the chat failed because the script had ended: in the same process, or over HTTP. */
export function scriptErrorOf({ error }: Pick<ChatSnapshot, 'error'>): Error | undefined {
  if (error?.cause instanceof ScriptError) return error.cause
  const body = error?.code === 'http-status' ? error.data.body : undefined
  return typeof body === 'string' && body.startsWith(BEGINNING) ? new Error(body) : undefined
}
