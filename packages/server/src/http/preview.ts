import { isRecord } from '@countersign/core'
import type { FullLimits } from '../limits.js'
import type { Agent } from '../run/agent.js'
import { type AnswerOptions, replyOf, respond, type ServePost } from './answer.js'
import { subjectOf } from './holder.js'
import { checkRequest, rejection, tooManyBodies } from './http.js'
import { checkOrigin } from './origin.js'
import { bytesHeldBy, takeArriving } from './quota.js'
import { checkId, invalid } from './run-input.js'

/** @throws CountersignError `invalid-request` */
function readEdits(body: unknown, limits: FullLimits): Parameters<Agent['previewEdits']>[0] {
  if (!isRecord(body) || !isRecord(body.call) || typeof body.call.arguments !== 'string')
    throw invalid('The body must be an object: { threadId, approvalId, token, call, input }.')
  const { call, token, input } = body
  return {
    threadId: checkId('threadId', body.threadId, limits),
    approvalId: checkId('approvalId', body.approvalId, limits),
    token,
    call: {
      id: checkId('call.id', call.id, limits),
      name: checkId('call.name', call.name, limits),
      arguments: `${call.arguments}`,
    },
    input,
  }
}

/** {@link previewResponse} as status and body. */
export const previewRequest: ServePost = async (agent, head, readBody, options) => {
  try {
    checkOrigin(head.origin, head.host, options)
    const { limits } = agent
    checkRequest(head.method, head.type, head.length, limits)
    const owner = subjectOf(options.context)?.id
    const edits = readEdits(await readBody({ owner, limits }), limits)
    const held = takeArriving(owner, bytesHeldBy(edits), limits)
    if (held === undefined) throw tooManyBodies()
    return replyOf(await agent.previewEdits(edits, options.context).finally(held.release))
  } catch (error) {
    return rejection(agent, error)
  }
}

/**
 * Computes the preview of arguments that a user has edited, for servers with the Fetch API. Needed where a tool has a `preview` and
 * `allowEdits`: the page shows it before it offers to approve. The body is `{ threadId, approvalId, token, call, input }`, the reply
 * `{ preview, proof }`. 409 with the code of a refusal if the request is not open, not this user's, or may not be edited like this.
 *
 * @example export const POST = (request) => previewResponse(agent, request, { context: { subject: await userId(request) } })
 */
export function previewResponse(
  agent: Agent,
  request: Request,
  options: AnswerOptions = {},
): Promise<Response> {
  return respond(previewRequest, agent, request, options)
}
