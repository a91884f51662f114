import { client } from './chat.js'
import { focusComposer } from './focus.js'
import { standingGrants } from './standing-grants.js'

/** The session approvals of this page's conversation. */
export const grants = standingGrants(client)

export const GRANTS_TITLE_ID = 'grants-title'

/** Revokes one, or all. The pressed button disappears: focus the heading of the list, after the last one the composer. */
export async function revokeGrant(id?: string): Promise<void> {
  document.getElementById(GRANTS_TITLE_ID)?.focus()
  await grants.revoke(id)
  if (grants.getSnapshot().grants.length === 0) focusComposer()
}
