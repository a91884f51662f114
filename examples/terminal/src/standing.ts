import type { ChatClient, SessionGrant } from '@countersign/client'
import { grantName, grantUse } from '@countersign/client/ui'
import { displayText } from '@countersign/core'

/** The session approvals, standing approvals and denials of the conversation, numbered. */
export function listStanding(client: ChatClient): Promise<string> {
  return orWhy(async () => {
    const standing = await client.grants()
    if (standing.length === 0) return 'There are no standing approvals.\n'
    return standing.map((grant, at) => `${at + 1}  ${lineOf(grant)}\n`).join('')
  })
}

/** Revokes one by its number in the list. */
export function revokeStanding(client: ChatClient, at: number): Promise<string> {
  return orWhy(async () => {
    const grant = (await client.grants())[at - 1]
    if (grant === undefined) return `There is no standing approval ${at}. /standing lists them.\n`
    await client.revokeGrant(grant.id)
    return `Revoked: ${lineOf(grant)}\n`
  })
}

async function orWhy(work: () => Promise<string>): Promise<string> {
  try {
    return await work()
  } catch (error) {
    const why = displayText(error instanceof Error ? error.message : String(error), { multiline: false })
    return `The server did not confirm it: ${why.text}\n`
  }
}

function lineOf(grant: SessionGrant): string {
  const name = displayText(grantName(grant), { multiline: false }).text
  const use = grantUse(grant)
  return use === '' ? name : `${name} (${use})`
}
