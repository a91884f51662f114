import { CountersignError, isRecord, type SessionGrant } from '@countersign/core'
import type { Connection } from './connection.js'
import { type Endpoint, type FetchOptions, fetchResponse, urlOf } from './fetch.js'

/**
 * A connection whose server also lists and revokes session approvals, at a separate URL (`grantsResponse`).
 *
 * @example withGrants(fetchServerSentEvents('/api/chat'), '/api/grants')
 */
export function withGrants(connection: Connection, url: Endpoint, options: FetchOptions = {}): Connection {
  async function send(
    method: 'GET' | 'DELETE',
    query: Record<string, string> | [string, string][],
    headers: Readonly<Record<string, string>>,
  ): Promise<Record<string, unknown>> {
    const response = await fetchResponse(url, options, {
      method,
      query,
      headers: { ...headers, accept: 'application/json' },
    })
    const body: unknown = await response.json().catch(() => undefined)
    if (isRecord(body)) return body
    const message = `"${urlOf(url, response)}" answered no JSON. Check that it is the URL of the grants.`
    throw new CountersignError('empty-response', message)
  }

  return {
    ...connection,
    async grants({ threadId }, { headers }) {
      const { grants } = await send('GET', { threadId }, headers)
      return Array.isArray(grants) ? grants.filter(isGrant) : []
    },
    async replayMandate({ threadId, approvalId, mandate, toolCallIds }, { headers }) {
      const which = Object.entries({ threadId, approvalId, mandate })
      const calls = toolCallIds.map((id): [string, string] => ['call', id])
      const { asked, matched } = await send('GET', [...which, ...calls], headers)
      return { asked: Number(asked), matched: Array.isArray(matched) ? matched : [] }
    },
    async revokeGrant({ threadId, id }, { headers }) {
      const { revoked } = await send('DELETE', { threadId, ...(id !== undefined && { id }) }, headers)
      return typeof revoked === 'number' ? revoked : 0
    },
  }
}

function isGrant(value: unknown): value is SessionGrant {
  return (
    isRecord(value) &&
    [value.id, value.threadId, value.toolName, value.grantedAt, value.expiresAt ?? ''].every(
      (text) => typeof text === 'string',
    )
  )
}
