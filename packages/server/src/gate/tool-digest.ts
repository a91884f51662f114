import { sha256 } from '../encoding/bytes.js'
import { canonicalJson } from '../encoding/canonical.js'
import { ANY_TOOL, type Grant } from '../ledger/grant.js'
import type { ReadyCall } from '../tools/call.js'
import { parametersOf } from '../tools/schema.js'
import { termsOf } from './gate.js'

type Tool = ReadyCall['tool']

const digests = new WeakMap<Tool, Promise<string>>()

/**
 * The digest of a tool's schema and `version`, and of whether it has `bind`, `preview` and `scopeKey`: session approvals and mandates given for
 * another one do not apply.
 */
export async function toolDigest(tool: Tool): Promise<string> {
  const known = digests.get(tool) ?? sha256(descriptionOf(tool))
  digests.set(tool, known)
  return known
}

/** @throws Error if the schema can't be written as JSON. */
function descriptionOf(tool: Tool): string {
  const { version = null, bind, preview, scopeKey } = tool
  const has = [bind, preview, scopeKey].map((option) => option !== undefined)
  const written = canonicalJson([parametersOf(tool), version, ...has])
  if (!written.ok) throw new Error(`The schema of ${tool.name} can't be written: ${written.reason}.`)
  return written.canonical
}

/** Tells which of the user's grants let calls of a tool through as it is now. */
export async function grantsFor(tool: Tool): Promise<(grant: Grant) => boolean> {
  const digest = await toolDigest(tool).catch(() => '')
  const isSession = termsOf(tool).scopes.includes('session')
  return (grant) => {
    if (grant.tool === ANY_TOOL) return true
    const isOffered = grant.terms === undefined ? isSession : tool.mandates !== undefined
    return isOffered && (grant.terms ?? grant).tool === digest
  }
}
