import type {
  ApprovalResponse,
  ApprovalView,
  DisplayLimits,
  EditedPreview,
  MandateChoice,
} from '@countersign/client'

/** The decision on one request, and the line that reports it. */
export interface Decision {
  readonly response: ApprovalResponse
  readonly line: string
  /** Denied because there was no terminal to ask in. */
  readonly deniedUnasked: boolean
}

/** Decides a request: by asking the user, or by a rule if there is none. Shows the request first. */
export type Decide = (request: Request) => Promise<Decision>

/** Edited arguments, and their preview if the request has one. */
export interface EditedCall {
  readonly input: unknown
  readonly edited?: EditedPreview
}

/** One request to decide: in full, and as it fits on a screen, with the edited arguments if there are any. */
export interface Request {
  readonly view: ApprovalView
  readonly viewOf: (edited: EditedCall | undefined, limits: DisplayLimits) => ApprovalView
  /** Asks the server what edited arguments would do. Undefined if the request has no preview. */
  readonly previewEdits: ((input: unknown) => Promise<EditedPreview>) | undefined
  readonly toolName: string
  /** How many requests wait after this one. */
  readonly more: number
}

/** An approval, for this call or for the session, with the edited arguments if there are any. */
export function approve(id: string, scope: 'once' | 'session', edited: EditedCall | undefined): Decision {
  const words = scope === 'session' ? 'Approved for this session' : 'Approved once'
  const line = edited ? `${words}, with your changes.` : `${words}.`
  return { response: { id, approved: true, scope, ...edited }, line, deniedUnasked: false }
}

/** A standing approval or denial, for this call and more. */
export function chooseMandate({ label, response }: MandateChoice): Decision {
  const word = response.approved ? 'Approved' : 'Denied'
  return { response, line: `${word}, and more: ${label.text}.`, deniedUnasked: false }
}

/** A denial. `because` gives the cause if the user did not type it. */
export function deny(id: string, because?: string): Decision {
  const line = because === undefined ? 'Denied.' : `Denied: ${because}.`
  return { response: { id, approved: false }, line, deniedUnasked: false }
}

/** Without a terminal: denies, except for the tools named with `--yes-to`. Approves only this one call. */
export function decideUnasked({ view, toolName }: Request, yesTo: ReadonlySet<string>): Decision {
  const { id } = view
  const once = view.choices.some(({ option, disabled }) => option === 'once' && !disabled)
  if (once && yesTo.has(toolName))
    return { ...approve(id, 'once', undefined), line: 'Approved once: --yes-to.' }
  const because = 'there is no terminal to ask in. Run this in a terminal, or name the tool with --yes-to'
  const response = { id, approved: false, reason: 'No user was there to approve it.' }
  return { ...deny(id, because), response, deniedUnasked: true }
}
