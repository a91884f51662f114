import { client } from './chat.js'
import { focusComposer } from './focus.js'
import { standingGrants } from './standing-grants.js'

/** The standing approvals of this page's conversation. */
export const grants = standingGrants(client)

export const GRANTS_TITLE_ID = 'grants-title'

/** Ends one of them, or all. The button that was pressed goes away: the focus goes to the title of the list, and after the last one to the composer. */
export async function revokeGrant(id?: string): Promise<void> {
  document.getElementById(GRANTS_TITLE_ID)?.focus()
  await grants.revoke(id)
  if (grants.getSnapshot().grants.length === 0) focusComposer()
}

/** Begins a new chat. What was approved for the rest of the old one ends with it. */
export function startAnew(): void {
  client.clear()
  focusComposer()
  const { grants: standing, problem } = grants.getSnapshot()
  if (standing.length > 0 || problem) void grants.revoke()
}
