import type { SessionGrant } from '@countersign/core'
import type { GrantsProblem } from './standing-grants.js'

/** How many approvals stand. */
export function grantsTitle(count: number): string {
  return count === 1 ? '1 standing approval' : `${count} standing approvals`
}

/** The tool, and what its approval is narrowed to. */
export function grantName({ toolName, scopeKey }: SessionGrant): string {
  return scopeKey === undefined ? toolName : `${toolName}: ${scopeKey}`
}

/** Since when it stands: a time of today, or the day with it. */
export function grantedSince({ grantedAt }: SessionGrant, today = new Date()): string {
  const at = new Date(grantedAt)
  const isToday = at.toDateString() === today.toDateString()
  return at.toLocaleString([], isToday ? { timeStyle: 'short' } : { dateStyle: 'medium', timeStyle: 'short' })
}

/** What failed, in words. */
export function grantsProblem(problem: GrantsProblem): string {
  switch (problem) {
    case 'unread':
      return 'The standing approvals of this chat could not be read.'
    case 'unrevoked':
      return 'The server did not confirm that the approval has ended. It may still stand.'
    default:
      return problem satisfies never
  }
}
