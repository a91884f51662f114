import type { ApprovalResponse, ApprovalView, DisplayLimits } from '@countersign/client'

/** What was decided about one request, and the line that says so. */
export interface Decision {
  readonly response: ApprovalResponse
  readonly line: string
  /** Nobody could be asked, and it was denied for that. */
  readonly deniedUnasked: boolean
}

/** Whoever decides: the person, or the rule for where there is none. It shows the request before it does. */
export type Decide = (request: Request) => Promise<Decision>

/** One request as whoever decides gets it: whole, and as it fits on a screen, with the edited arguments where there are any. */
export interface Request {
  readonly view: ApprovalView
  readonly viewOf: (edited: { input: unknown } | undefined, limits: DisplayLimits) => ApprovalView
  readonly toolName: string
  /** How many requests wait after this one. */
  readonly more: number
}

/** Yes, for this call or for the session, with the edited arguments where there are any. */
export function approve(
  id: string,
  scope: 'once' | 'session',
  edited: { input: unknown } | undefined,
): Decision {
  const words = scope === 'session' ? 'Approved for this session' : 'Approved once'
  const line = edited ? `${words}, with your changes.` : `${words}.`
  return { response: { id, approved: true, scope, ...edited }, line, deniedUnasked: false }
}

/** No. `because` says why, where nobody said no in words. */
export function deny(id: string, because?: string): Decision {
  const line = because === undefined ? 'Denied.' : `Denied: ${because}.`
  return { response: { id, approved: false }, line, deniedUnasked: false }
}

/** Where nobody can be asked: no, but for the tools that the caller of the program has named. Never for more than this call. */
export function decideUnasked({ view, toolName }: Request, yesTo: ReadonlySet<string>): Decision {
  const { id } = view
  const once = view.choices.some(({ option, disabled }) => option === 'once' && !disabled)
  if (once && yesTo.has(toolName))
    return { ...approve(id, 'once', undefined), line: 'Approved once: --yes-to.' }
  const because = 'nobody can be asked here. Run this in a terminal, or name the tool with --yes-to'
  const response = { id, approved: false, reason: 'Nobody could be asked.' }
  return { ...deny(id, because), response, deniedUnasked: true }
}
