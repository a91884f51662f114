import { isRecord } from '@countersign/core'
import type { FullLimits } from '../limits.js'
import type { Agent } from '../run/agent.js'
import { subjectOf } from '../scope/run-context.js'
import type { AnswerOptions } from './answer.js'
import { json } from './http.js'
import { checkPost, type Route, respond, whileHeld, whole } from './route.js'
import { checkOrigin } from './route-rules.js'
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

export const previewRoute: Route = {
  allow: 'POST',
  async serve(agent, request, options) {
    checkOrigin(request.header('origin'), request.host, options)
    checkPost(request, agent)
    const { limits } = agent
    const context = await request.context()
    const owner = subjectOf(context)?.id
    const edits = readEdits(await request.readBody({ owner, limits }), limits)
    const preview = () => agent.previewEdits(edits, context, request.gone)
    return whole(agent, context, json(await whileHeld(owner, edits, agent, preview)))
  },
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
  return respond('previewResponse', previewRoute, agent, request, options)
}
