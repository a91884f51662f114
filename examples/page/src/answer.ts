import type { ToolCallPart } from '@countersign/core'
import { client } from './chat.js'
import { type Draft, draftOf } from './edit.js'
import { focusCard, nextRequest } from './focus.js'
import { lateOf } from './words.js'

/** What the person has decided about a request. */
export interface Answer {
  approved: boolean
  reason?: string
  input?: unknown
  scope?: 'once' | 'session'
}

/** A no, with its reason where one was given. */
export function denial(reason: string): Answer {
  return reason.trim() === '' ? { approved: false } : { approved: false, reason: reason.trim() }
}

/** A yes to the arguments as the person changed them, or as they are. */
export function approvalOf(edited: unknown): Answer {
  return edited === undefined ? { approved: true } : { approved: true, input: edited }
}

/** The changed arguments that were given, by approval id: an edit that does not fit the tool leaves its request open. */
const edits = new Map<string, unknown>()

/** What the edit form begins with: the changes that were given before, which the person corrects. */
export function firstDraft({ approval }: ToolCallPart): Draft {
  return draftOf(approval && edits.get(approval.id))
}

/**
 * Gives the answer. Moves the focus on first: to the next open request, or to this card's heading. Resolves with what to tell the person
 * where the answer came too late.
 */
export async function giveAnswer(part: ToolCallPart, answer: Answer): Promise<string | undefined> {
  const id = part.approval?.id
  if (id === undefined) return undefined
  if (answer.input !== undefined) edits.set(id, answer.input)
  focusCard(nextRequest(client.getSnapshot().pendingApprovals) ?? part)
  return lateOf(await client.addToolApprovalResponse({ id, ...answer }))
}
