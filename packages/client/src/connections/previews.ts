import { CountersignError, type EditedPreview, isRecord } from '@countersign/core'
import type { ChatClient } from '../client.js'
import { checkType, type Endpoint, type FetchOptions, fetchResponse } from './fetch.js'

/** Edited arguments of an open approval request, all of them. */
export interface Edits {
  /** The approval's id. */
  readonly id: string
  readonly input: unknown
}

/**
 * Asks the server, at the URL of its `previewResponse`, what edited arguments would do. Pass the result as `edited` with the answer that
 * approves them.
 *
 * @throws CountersignError `invalid-argument` if the request is not open here; `http-status` (409) if the server refuses the edits.
 *
 * @example
 * const edited = await previewEdits('/api/preview', client, { id, input })
 * await client.addToolApprovalResponse({ id, approved: true, input, edited })
 */
export async function previewEdits(
  url: Endpoint,
  { threadId, getSnapshot }: Pick<ChatClient, 'threadId' | 'getSnapshot'>,
  { id: approvalId, input }: Edits,
  options: FetchOptions = {},
): Promise<EditedPreview> {
  const asked = getSnapshot().pendingApprovals.find(({ approval }) => approval.id === approvalId)
  if (asked === undefined) {
    const message = 'There is no open approval request with this id, so its arguments cannot be edited.'
    throw new CountersignError('invalid-argument', message, { approvalId })
  }
  const { id, name, arguments: text, approval } = asked
  const call = { id, name, arguments: text }
  const response = await fetchResponse(url, options, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: { threadId, approvalId, token: approval.token, call, input },
  })
  checkType(url, response, 'application/json')
  const body: unknown = await response.json().catch(() => undefined)
  if (isRecord(body) && typeof body.proof === 'string') return { preview: body.preview, proof: body.proof }
  throw new CountersignError('empty-response', `"${url}" answered no preview. Check its URL.`)
}
