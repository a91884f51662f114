import type { EditedPreview, ToolCallPart } from '@countersign/core'
import type { ChatClient } from '../client.js'
import type { ApprovalResponse } from '../command.js'
import { type Draft, draftOf } from './edit-draft.js'
import { focusCard, focusComposer, nextRequest } from './focus.js'
import { lateOf } from './words.js'

/** The user's answer to an approval request. */
export interface Answer {
  approved: boolean
  reason?: string
  input?: unknown
  /** The preview of the edited arguments. */
  edited?: EditedPreview
  scope?: 'once' | 'session'
  /** The id of a standing approval or denial, in place of `scope`. */
  mandate?: string
}

/** A denial, with its reason if one was given. */
export function denial(reason: string): Answer {
  return reason.trim() === '' ? { approved: false } : { approved: false, reason: reason.trim() }
}

/** An approval of the arguments as the user edited them, or as they are. */
export function approvalOf(input: unknown, edited?: EditedPreview): Answer {
  return input === undefined ? { approved: true } : { approved: true, input, ...(edited && { edited }) }
}

/** The edited arguments of each chat that were sent last, by approval id. */
const edits = new WeakMap<object, ReadonlyMap<string, unknown>>()
const MOST_EDITS = 20

/**
 * What the edit form starts with: the edits that this page has sent before, for the user to correct. A request whose edit the server
 * has not accepted is open again. Empty if there are none.
 */
export function firstDraft(client: object, { approval }: ToolCallPart): Draft {
  return draftOf(approval && edits.get(client)?.get(approval.id))
}

/**
 * Sends the answer. First moves the focus to the next open request, or to this card's heading. Resolves to a
 * message for the user if the answer came too late, or was refused before it was sent.
 */
export async function giveAnswer(
  client: Pick<ChatClient, 'getSnapshot' | 'addToolApprovalResponse'>,
  part: ToolCallPart,
  answer: Answer,
): Promise<string | undefined> {
  const id = part.approval?.id
  if (id === undefined) return undefined
  if (answer.input !== undefined)
    edits.set(client, new Map([...(edits.get(client) ?? []), [id, answer.input] as const].slice(-MOST_EDITS)))
  focusCard(nextRequest(client.getSnapshot().pendingApprovals) ?? part)
  const result = await client.addToolApprovalResponse({ id, ...answer })
  if (result.status !== 'refused') return lateOf(result)
  // The card says why the server refused it, not why the client did: then nothing was sent.
  const open = client.getSnapshot().pendingApprovals.find(({ approval }) => approval.id === id)
  return open && !open.error ? result.reason : undefined
}

/** Denies all open requests that may be denied, in one go. The button that was pressed disappears: the focus goes to the message input. */
export function denyAll(client: Pick<ChatClient, 'getSnapshot' | 'addToolApprovalResponses'>): void {
  const denials = client
    .getSnapshot()
    .pendingApprovals.flatMap(({ approval: { id, options } }): ApprovalResponse[] =>
      options.includes('deny') ? [{ id, approved: false }] : [],
    )
  focusComposer()
  void client.addToolApprovalResponses(denials)
}
