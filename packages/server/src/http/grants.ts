import { type GrantedMandate, omitUndefined, type SessionGrant } from '@countersign/core'
import { MAX_REPLAYED } from '../gate/replay.js'
import type { Grant, Mandate } from '../ledger/grant.js'
import { NEVER } from '../ledger/ledger.js'
import type { Agent } from '../run/agent.js'
import { type RunContext, subjectOf } from '../scope/run-context.js'
import { json } from './http.js'
import { type Route, respond, whole } from './route.js'
import { checkOrigin, type OriginRule } from './route-rules.js'
import { checkId, invalid, queryOf } from './run-input.js'

export interface GrantsOptions extends OriginRule {
  /** What the application knows about this request: the same `subject` as for the run. */
  readonly context?: RunContext | undefined
}

export const grantsRoute: Route = {
  allow: 'GET, DELETE',
  async serve(agent, request, options) {
    checkOrigin(request.header('origin'), request.host, options)
    const query = queryOf(request.url)
    const threadId = checkId('threadId', query.get('threadId'), agent.limits)
    const context = await request.context()
    const holder = subjectOf(context)
    // Without a user, nobody can have approved anything for a session.
    const subject = holder?.id
    switch (request.method) {
      case 'GET': {
        if (query.has('mandate')) return json(await replay(agent, subject, threadId, query, request.gone))
        const grants = subject === undefined ? [] : await agent.grants.list(subject, threadId)
        return whole(agent, context, json({ grants: grants.map(toSessionGrant) }))
      }
      case 'DELETE': {
        const id = query.has('id') ? { id: checkId('id', query.get('id'), agent.limits) } : {}
        const which = { threadId, ...id }
        const revoked = subject === undefined ? 0 : await agent.grants.revoke(subject, which, request.gone)
        return json({ revoked })
      }
      default:
        throw invalid('Send GET or DELETE.', 405)
    }
  },
}

/**
 * Lists and revokes the user's session grants, mandates and standing denials in one thread, for servers with the Fetch API. `GET ?threadId=` returns
 * `{ grants }`; with `&approvalId=&mandate=&call=&call=`, what an offered mandate would have decided about past calls. `DELETE ?threadId=&id=` revokes one, or without `id` all of the thread, and returns `{ revoked }`, the number revoked.
 * Nobody can list or revoke another user's.
 *
 * @throws CountersignError `invalid-option`
 *
 * @example
 * const options = async (request) => ({ context: { subject: await userId(request) } })
 * export const GET = async (request) => grantsResponse(agent, request, await options(request))
 * export const DELETE = GET
 */
export function grantsResponse(
  agent: Agent,
  request: Request,
  options: GrantsOptions = {},
): Promise<Response> {
  return respond('grantsResponse', grantsRoute, agent, request, options)
}

async function replay(
  agent: Agent,
  subject: string | undefined,
  threadId: string,
  query: URLSearchParams,
  gone: AbortSignal,
) {
  const id = (name: string) => checkId(name, query.get(name), agent.limits)
  const toolCallIds = query.getAll('call')
  if (toolCallIds.length > MAX_REPLAYED) throw invalid(`Name at most ${MAX_REPLAYED} calls.`, 413)
  for (const one of toolCallIds) checkId('call', one, agent.limits)
  if (subject === undefined) throw invalid('Without a user there are no mandates.', 404)
  const request = { threadId, approvalId: id('approvalId'), mandate: id('mandate'), toolCallIds }
  return agent.grants.replay(subject, request, gone)
}

function toSessionGrant(grant: Grant): SessionGrant {
  const { id, threadId, toolName, toolServer, scopeKey, grantedAt, expiresAt, usesLeft, terms } = grant
  return {
    ...{ id, threadId, toolName },
    grantedAt: new Date(grantedAt).toISOString(),
    ...omitUndefined({
      ...{ toolServer, usesLeft },
      expiresAt: expiresAt < NEVER ? new Date(expiresAt).toISOString() : undefined,
      scopeKey: terms === undefined && scopeKey !== toolName ? scopeKey : undefined,
      mandate: terms && toGrantedMandate(grant, terms),
    }),
  }
}

/** Without the constraints, which may contain arguments that the user must not read. */
function toGrantedMandate({ approved, owner }: Grant, terms: Mandate): GrantedMandate {
  const { label, budget, spent, used, lastUsedAt } = terms
  return {
    ...{ label, used, grantedBy: owner },
    ...(!approved && { decide: 'deny' }),
    ...(lastUsedAt !== undefined && { lastUsedAt: new Date(lastUsedAt).toISOString() }),
    ...(budget !== undefined && { budget: { total: budget.total, spent, unit: budget.unit } }),
  }
}
