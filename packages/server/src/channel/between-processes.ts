import type { ResumeEntry } from '@countersign/core'
import type { Receive } from './answer-channel.js'
import { type AnswerContext, type Delivery, runEnded } from './answer-queue.js'

/** Receives answers from another process; the result is sent back. */
export async function received(
  receive: Receive,
  entries: readonly ResumeEntry[],
  context: AnswerContext,
): Promise<Delivery> {
  try {
    return await receive(entries, context)
  } catch {
    return runEnded
  }
}

/** Maximum JSON characters of one transferred context member. */
const MAX_MEMBER = 16 * 1024

/** The members of a context that can be transferred. The application's services, such as a database, can't. */
export function plainMembers(context: AnswerContext): AnswerContext {
  return Object.fromEntries(Object.entries(context).filter(([, value]) => isPlain(value)))
}

function isPlain(value: unknown): boolean {
  if (typeof value === 'function' || typeof value === 'symbol' || typeof value === 'bigint') return false
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
    const prototype: unknown = Object.getPrototypeOf(value)
    if (prototype !== Object.prototype && prototype !== null) return false
  }
  try {
    return (JSON.stringify(value)?.length ?? MAX_MEMBER + 1) <= MAX_MEMBER
  } catch {
    return false
  }
}
