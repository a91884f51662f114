import type { SessionGrant } from '@countersign/core'
import type { GrantsProblem } from './standing-grants.js'

/** The heading: how many session approvals there are. */
export function grantsTitle(count: number): string {
  return count === 1 ? '1 session approval' : `${count} session approvals`
}

/** The tool, and the scope key its approval is limited to. */
export function grantName({ toolName, scopeKey }: SessionGrant): string {
  return scopeKey === undefined ? toolName : `${toolName}: ${scopeKey}`
}

/** When it was approved: the time if that was today, else the date and the time. */
export function grantedSince({ grantedAt }: SessionGrant, today = new Date()): string {
  const at = new Date(grantedAt)
  const isToday = at.toDateString() === today.toDateString()
  return at.toLocaleString([], isToday ? { timeStyle: 'short' } : { dateStyle: 'medium', timeStyle: 'short' })
}

/** An error message for what failed. */
export function grantsProblem(problem: GrantsProblem): string {
  switch (problem) {
    case 'unread':
      return 'Could not load the session approvals of this chat.'
    case 'unrevoked':
      return 'The server did not confirm the revocation. The approval may still be in effect.'
    default:
      return problem satisfies never
  }
}
