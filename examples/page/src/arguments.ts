import { type ApprovalView, approvalView, argumentFields } from '@countersign/client'
import type { DisplayLimits, ToolCallPart } from '@countersign/core'

/** Texts that still arrive are cut after so many characters. */
const CUT_AFTER = 600

/** What is shown of a call until the person asks for all of it: what fits on a screen. */
const firstLook: DisplayLimits = { maxLength: 1200, maxLines: 32, columns: 64 }

/** How much of the arguments is shown. `expanded`: the person has asked for all of them. */
export function limitsOf(expanded: boolean): DisplayLimits {
  return expanded ? {} : firstLook
}

/** A request as its card shows it. `exact`: the arguments as the tool gets them, not as the server shows them. */
export function cardOf(part: ToolCallPart, expanded: boolean, exact: boolean): ApprovalView | undefined {
  return approvalView(part, { ...limitsOf(expanded), exact, fields: true })
}

/** A request as the dialog shows it. */
export function dialogViewOf(
  part: ToolCallPart,
  expanded: boolean,
  exact: boolean,
): ApprovalView | undefined {
  return approvalView(part, { ...limitsOf(expanded), exact })
}

/** The arguments a call runs with: as the person changed them, or else as they came. */
export function effectiveInput({ approval, input }: ToolCallPart): unknown {
  return approval?.input === undefined ? input : approval.input
}

/** The arguments a call runs with in a few words, for one line. */
export function summaryOf(part: ToolCallPart): string {
  const { fields } = argumentFields(effectiveInput(part), { maxLength: 160 })
  return fields.map(({ value }) => `${value.text}${value.hidden > 0 ? '…' : ''}`).join(', ')
}

/**
 * Arguments that still arrive, with long texts cut. To look through a whole text for characters to write out, again and again while it
 * grows, would cost the square of its length.
 */
export function beginningsOf(input: unknown): unknown {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) return input
  const cut = (value: unknown) =>
    typeof value === 'string' && value.length > CUT_AFTER
      ? `${value.slice(0, CUT_AFTER)}… (${value.length.toLocaleString('en')} characters so far)`
      : value
  return Object.fromEntries(Object.entries(input).map(([key, value]) => [key, cut(value)]))
}
