import type { ChatSnapshot, Interrupt } from '@countersign/core'
import type { ChatClient } from '../client.js'
import type { InterruptResponse } from '../command.js'
import { focusCard, focusComposer, showCard } from './focus.js'
import { lateOf } from './words.js'

/** The id of a question's heading, which can receive the focus. */
export function questionHeadingId({ id }: Interrupt): string {
  return `question-${id}`
}

/** Whether the agent waits for something that the user has to read. */
export function waitsForReader({ status, interrupts }: ChatSnapshot): boolean {
  return status === 'awaiting-approval' || interrupts.length > 0
}

/**
 * Brings the first approval request into view, or the first question if there is no request. In the next
 * frame, because following the end of the conversation scrolls there first.
 */
export function showFirst({ pendingApprovals: [request], interrupts: [question] }: ChatSnapshot): void {
  requestAnimationFrame(() => {
    if (request) showCard(request)
    else if (question)
      document.getElementById(questionHeadingId(question))?.scrollIntoView({ block: 'nearest' })
  })
}

/**
 * Answers or declines a question. First moves the focus to the next question or request, or to the composer.
 * Resolves to a message for the user if the answer was not accepted.
 */
export async function answerQuestion(
  client: Pick<ChatClient, 'getSnapshot' | 'respondToInterrupt'>,
  response: InterruptResponse,
): Promise<string | undefined> {
  focusNext(client, response.id)
  const result = await client.respondToInterrupt(response)
  if (result.status === 'refused') return result.reason ?? 'The answer was not accepted.'
  if (result.status === 'expired') return 'The time to answer is over. You can still decline.'
  return lateOf(result)
}

function focusNext(client: Pick<ChatClient, 'getSnapshot'>, id: string): void {
  const { interrupts, pendingApprovals } = client.getSnapshot()
  const question = interrupts.find((other) => other.id !== id)
  const [request] = pendingApprovals
  if (question) document.getElementById(questionHeadingId(question))?.focus()
  else if (request) focusCard(request)
  else focusComposer()
}
