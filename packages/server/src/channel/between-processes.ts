import type { ResumeEntry } from '@countersign/core'
import type { Receive } from './answer-channel.js'
import { type AnswerContext, type Delivery, runEnded } from './answer-queue.js'

/** What becomes of answers that were brought to a run of this process, as it is told to another one. */
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

/** Characters of JSON that one member of a context may have on its way. */
const MAX_MEMBER = 16 * 1024

/** The members of a context that can be sent. Services of the application, such as a database, stay where they are. */
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
