import type { OfferedMandate, SessionGrant } from '@countersign/core'
import type { GrantsProblem } from './standing-grants.js'

/** The heading: how many there are of each kind. */
export function grantsTitle(grants: readonly SessionGrant[]): string {
  const kinds = ['session approval', 'standing approval', 'standing denial']
  const counts = kinds.map((kind) => grants.filter((grant) => kindOf(grant) === kind).length)
  const words = kinds.map((kind, at) => `${counts[at]} ${kind}${counts[at] === 1 ? '' : 's'}`)
  return words.filter((_, at) => counts[at] !== 0).join(', ')
}

function kindOf({ mandate }: SessionGrant): string {
  if (mandate === undefined) return 'session approval'
  return mandate.decide === 'deny' ? 'standing denial' : 'standing approval'
}

/** What it allows or refuses: a mandate's label, or the tool and the scope key that it is limited to. */
export function grantName({ toolName, scopeKey, mandate }: SessionGrant): string {
  if (mandate !== undefined) return mandate.label
  return scopeKey === undefined ? toolName : `${toolName}: ${scopeKey}`
}

/** When it was approved. */
export function grantedSince({ grantedAt }: SessionGrant, today = new Date()): string {
  return timeOf(grantedAt, today)
}

/** How long it lasts, and how far a mandate is used up. */
export function grantUse({ mandate, usesLeft, expiresAt }: SessionGrant, today = new Date()): string {
  if (mandate === undefined) return expiresAt === undefined ? '' : `until ${timeOf(expiresAt, today)}`
  const { used, budget, lastUsedAt, decide } = mandate
  const words = [
    // A denial counts nothing.
    decide === 'deny' ? '' : `used ${times(used)}`,
    usesLeft === undefined ? '' : `${usesLeft} left`,
    budget === undefined ? '' : `${budget.spent} of ${budget.total} ${budget.unit} spent`,
    lastUsedAt === undefined ? '' : `last ${timeOf(lastUsedAt, today)}`,
    expiresAt === undefined ? WITHOUT_END : `until ${timeOf(expiresAt, today)}`,
  ]
  return words.filter((word) => word !== '').join(', ')
}

/** The limits of a mandate that is offered, besides what its label says. */
export function mandateLimits({ uses, budget, expiresIn, decide }: OfferedMandate, now = new Date()): string {
  const until = expiresIn && new Date(now.getTime() + expiresIn * 1000).toISOString()
  const words = [
    uses === undefined ? '' : `${times(uses)} at most`,
    budget === undefined ? '' : `${budget.total} ${budget.unit} in total`,
    until ? `until ${timeOf(until, now)}` : decide === 'deny' ? WITHOUT_END : '',
  ]
  return words.filter((word) => word !== '').join(', ')
}

const WITHOUT_END = 'until you revoke it'

const times = (count: number): string => (count === 1 ? 'once' : `${count} times`)

/** The time if that is today, else the date and the time. */
function timeOf(iso: string, today: Date): string {
  const at = new Date(iso)
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
