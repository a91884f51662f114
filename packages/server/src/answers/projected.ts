import { isRecord } from '@countersign/core'
import { APPROVAL_TOOL } from '../gate/approval-tool.js'
import type { CallSite } from '../history/history.js'
import { readOwn } from '../history/metadata.js'
import type { RunScope } from '../scope/scope.js'
import type { Warn } from '../scope/settings.js'
import type { Answer } from './answers.js'

/**
 * Reads answers that arrived as results of the client tool for approval requests. Only a result of such a call counts, and only with
 * the token in the call's own arguments: neither an id that looks like one nor the ledger replaces it. A result that is no decision is
 * ignored with a warning; one that names another tool than the request's call is refused.
 */
export function readProjected(
  sites: readonly CallSite[],
  { settings: { warn }, context }: Pick<RunScope, 'settings' | 'context'>,
): readonly Answer[] {
  const isApproval = ({ call }: CallSite) => call.function.name === APPROVAL_TOOL
  const calls = new Map<unknown, CallSite>()
  for (const site of sites) if (!isApproval(site)) calls.set(site.call.id, site)
  return sites.flatMap((site) => {
    if (!isApproval(site) || site.result === undefined) return []
    const asked = parseObject(site.call.function.arguments)
    const about = calls.get(asked?.toolCallId)
    // A call with a result was answered before, and a result that closed the request itself is no answer.
    if (about?.result !== undefined || readOwn(site.result.metadata).outcome !== undefined) return []
    const payload = readPayload(site, about, warn)
    if (payload === undefined) return []
    const token = typeof asked?.token === 'string' ? asked.token : ''
    const said = { via: 'projection', approvalId: site.call.id, status: 'resolved' } as const
    return [{ ...said, payload, token, site: about, context }]
  })
}

/** Converts `{ decision: 'approve' | 'deny', scope?, reason?, editedArgs?, toolName? }` to the payload of any other answer. */
function readPayload({ call, result }: CallSite, about: CallSite | undefined, warn: Warn): unknown {
  const said = typeof result?.content === 'string' ? parseObject(result.content) : undefined
  if (said?.decision !== 'approve' && said?.decision !== 'deny') {
    warn(`The result of ${APPROVAL_TOOL} ${call.id} is no decision; the request stays open.`)
    return undefined
  }
  const { decision, scope, reason, editedArgs, toolName } = said
  if (toolName !== undefined && about !== undefined && toolName !== about.call.function.name) {
    warn(`The answer ${call.id} names another tool than its call; it is refused.`)
    return {}
  }
  const approved = decision === 'approve'
  return { approved, reason, ...(approved && { scope, editedArgs }) }
}

function parseObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return isRecord(value) ? value : undefined
  } catch {
    return undefined
  }
}
