import { type DisplayText, displayJson, displayText, type ToolCallPart } from '@countersign/core'

/** Values longer than this are cut until the person asks for all of them. */
const CUT_AFTER = 600

/** One argument as shown. */
export interface ShownArgument {
  /** `undefined` where the arguments are no object. */
  key: string | undefined
  shown: DisplayText
  /** A text is shown as it is, any other value as JSON. */
  isText: boolean
}

/** The arguments of a call as they may be shown, each cut after `maxLength` characters. */
export function showArguments(input: unknown, maxLength = CUT_AFTER): ShownArgument[] {
  if (input === undefined) return []
  if (typeof input !== 'object' || input === null || Array.isArray(input)) {
    return [{ key: undefined, ...showValue(input, maxLength) }]
  }
  return Object.entries(input).map(([key, value]) => ({ key, ...showValue(value, maxLength) }))
}

function showValue(value: unknown, maxLength: number): Omit<ShownArgument, 'key'> {
  const options = { maxLength }
  return typeof value === 'string'
    ? { shown: displayText(value, options), isText: true }
    : { shown: displayJson(value, options), isText: false }
}

/** How many characters are cut off in all. */
export function hiddenIn(shown: readonly ShownArgument[]): number {
  return shown.reduce((sum, argument) => sum + argument.shown.hidden, 0)
}

/** Characters, shown or not, of the arguments that are cut. */
export function lengthOfCut(shown: readonly ShownArgument[]): number {
  const cut = shown.filter((argument) => argument.shown.hidden > 0)
  const pieces = cut.flatMap((argument) => argument.shown.segments)
  const visible = pieces.map((piece) => (piece.type === 'escaped' ? 1 : [...piece.text].length))
  return visible.reduce((sum, length) => sum + length, hiddenIn(cut))
}

/** The arguments a call runs with: as the person changed them, or else as they came. */
export function effectiveInput({ approval, input }: ToolCallPart): unknown {
  return approval?.input === undefined ? input : approval.input
}

/** The arguments a call runs with in a few words, for one line. */
export function summaryOf(part: ToolCallPart): string {
  const shown = showArguments(effectiveInput(part), 60)
  return shown.map(({ shown }) => `${shown.text}${shown.hidden > 0 ? '…' : ''}`).join(', ')
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
