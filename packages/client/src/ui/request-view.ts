import { type DisplayLimits, displayText, type ToolCallPart } from '@countersign/core'
import { type ApprovalView, approvalView, argumentFields } from '../approval-view.js'
import { previewView } from '../preview-view.js'

/** Texts that are still streaming in are cut after this many characters. */
const CUT_AFTER = 500

/** What is shown of a call until the user asks for all of it: about one screen. */
const firstLook: DisplayLimits = { maxLength: 1200, maxLines: 32, columns: 64 }

/** How much of the arguments to show. `expanded`: the user has asked for all of them. */
export function limitsOf(expanded: boolean): DisplayLimits {
  return expanded ? {} : firstLook
}

/** How much of a request to show. Everything is off by default. */
export interface Look {
  /** The user has asked to see everything. Default: about one screen, and nothing can be approved while something is hidden. */
  readonly expanded?: boolean
  /** Masked arguments as the tool gets them, instead of the server's display version. */
  readonly exact?: boolean
  /** The arguments one by one, in `view.arguments.fields`. */
  readonly fields?: boolean
}

/** An approval request as a card or dialog shows it; `undefined` if the call is not waiting for approval. */
export function requestView(
  part: ToolCallPart,
  { expanded = false, exact = false, fields = false }: Look = {},
): ApprovalView | undefined {
  return approvalView(part, { ...limitsOf(expanded), exact, fields, preview: previewView })
}

/** The arguments a call runs with: edited by the user, or else the original ones. */
export function effectiveInput({ approval, input }: ToolCallPart): unknown {
  return approval?.input === undefined ? input : approval.input
}

/** The arguments a call runs with, shortened to one line. */
export function summaryOf(part: ToolCallPart): string {
  const { fields } = argumentFields(effectiveInput(part), { maxLength: 160 })
  return fields.map(({ value }) => `${value.text}${value.hidden > 0 ? '…' : ''}`).join(', ')
}

/** The arguments as the server wants them shown, in one short line. Tells apart the calls of one tool, where they are listed. */
export function briefOf(part: ToolCallPart): string {
  const { fields } = argumentFields(part.approval?.display ?? effectiveInput(part), { maxLength: 60 })
  const values = fields.map(({ value }) => `${value.text}${value.hidden > 0 ? '…' : ''}`)
  return values.join(', ').replaceAll(/\s+/g, ' ')
}

/** The name of a button for a screen reader: its label, and what it answers. */
export function answerName(label: string, part: ToolCallPart): string {
  return `${label}: ${[displayText(part.name, { multiline: false }).text, briefOf(part)].join(' ').trim()}`
}

/**
 * Arguments that are still streaming in, with long texts cut. Scanning the whole text for hidden characters
 * each time it grows would take quadratic time.
 */
export function beginningsOf(input: unknown): unknown {
  if (typeof input !== 'object' || input === null || Array.isArray(input)) return input
  const cut = (value: unknown) =>
    typeof value === 'string' && value.length > CUT_AFTER
      ? `${value.slice(0, CUT_AFTER)}… (${value.length.toLocaleString('en')} characters so far)`
      : value
  return Object.fromEntries(Object.entries(input).map(([key, value]) => [key, cut(value)]))
}
