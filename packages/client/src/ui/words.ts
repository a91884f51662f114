import type { ChatSnapshot, QueuedMessage, ToolCallPart } from '@countersign/core'
import { nextStep } from '../next-step.js'
import type { AnswerResult } from '../results.js'

/** The status of a call, in the page's own words. `tone` sets its color. */
export interface Standing {
  label: string
  tone: 'quiet' | 'waiting' | 'busy' | 'good' | 'bad'
}

/** One label for each state a call can be in. */
export function standingOf({ state, approval }: ToolCallPart): Standing {
  switch (state) {
    case 'awaiting-input':
    case 'input-streaming':
      return { label: 'Being prepared', tone: 'busy' }
    case 'input-complete':
      return { label: 'Running', tone: 'busy' }
    case 'approval-requested':
      return approval?.problem
        ? { label: 'Cannot be answered', tone: 'bad' }
        : { label: 'Waiting for you', tone: 'waiting' }
    case 'approval-responded':
      return answered(approval)
    case 'executing':
      return { label: 'Running here', tone: 'busy' }
    case 'complete':
      return { label: 'Done', tone: 'good' }
    case 'error':
      return { label: 'Failed', tone: 'bad' }
    case 'denied':
      return { label: 'Denied', tone: 'bad' }
    case 'cancelled':
      return cancelled(approval)
    default:
      return state satisfies never
  }
}

function cancelled(approval: ToolCallPart['approval']): Standing {
  if (approval?.problem === 'approval-expired') return { label: 'Expired', tone: 'quiet' }
  return approval?.problem ? { label: 'Refused', tone: 'bad' } : { label: 'Withdrawn', tone: 'quiet' }
}

function answered(approval: ToolCallPart['approval']): Standing {
  const verdict = approval?.approved ? 'Approved' : 'Denied'
  const delivery = approval?.delivery
  switch (delivery) {
    case 'waiting':
      return { label: `${verdict}, not sent yet`, tone: 'quiet' }
    case 'unknown':
      return { label: `${verdict}, delivery unknown`, tone: 'bad' }
    case 'sent':
    case 'settled':
    case undefined:
      return approval?.approved
        ? { label: 'Approved, running', tone: 'busy' }
        : { label: 'Denied, sent', tone: 'quiet' }
    default:
      return delivery satisfies never
  }
}

/** What to tell a user whose answer did not count, say because another tab was first. The card shows other problems. */
export function lateOf(result: AnswerResult): string | undefined {
  switch (result.status) {
    case 'already-answered':
    case 'closed':
    case 'not-found':
    case 'expired':
      return nextStep(result)?.message
    case 'sent':
    case 'waiting':
    case 'refused':
    case 'failed':
      return undefined
    default:
      return result satisfies never
  }
}

/** How many requests are waiting, and how many of them are set aside. */
export function pendingWords(waiting: number, setAside: number): string {
  const words = waiting === 1 ? 'One request is waiting for you' : `${waiting} requests are waiting for you`
  return setAside === 0 ? words : `${words}, ${setAside} set aside`
}

/** The title of a page, with how many requests and questions wait for the user. */
export function badgedTitle(title: string, { pendingApprovals, interrupts }: ChatSnapshot): string {
  const waiting = pendingApprovals.length + interrupts.length
  return waiting === 0 ? title : `(${waiting}) ${title}`
}

/** What an approval for the session covers. The server decides which calls are alike, and how long it lasts; the list of session approvals says it. */
export const SESSION_NOTE =
  '“Always” approves later calls like this one in this chat, without asking, until you revoke it or it expires.'

/** The hint under the composer: what sending would do now. */
export function hintOf(
  { pendingApprovals, interrupts, isLoading }: ChatSnapshot,
  isWriting: boolean,
): string {
  const open = [...countOf(pendingApprovals.length, 'request'), ...countOf(interrupts.length, 'question')]
  if (isWriting && open.length > 0) return `Sending a message withdraws the open ${open.join(' and ')}.`
  return isWriting && isLoading
    ? 'Your message will be sent after the current reply.'
    : 'Enter sends, Shift+Enter adds a new line.'
}

function countOf(count: number, thing: string): string[] {
  if (count === 0) return []
  return [count === 1 ? thing : `${count} ${thing}s`]
}

/** Why nothing can be approved yet. */
export function heldWords(hidden: number): string {
  return `${hidden.toLocaleString('en')} characters are not shown. Show all of them before you approve.`
}

/** The text of a queued message. */
export function queuedText({ message }: QueuedMessage): string {
  return message.parts.map((part) => (part.type === 'text' ? part.text : '')).join(' ')
}

/** Whose words a request's message is. It names the call as the model made it, also while the user edits that. */
export function sourceOfWords(isEditing: boolean): string {
  return isEditing ? 'The server says of the call without your changes' : 'The server says'
}
