import type { ApprovalView, DisplayLimits } from '@countersign/client'
import { mandateLimits } from '@countersign/client/ui'
import { type DisplayText, displayText } from '@countersign/core'
import { renderPreview } from './preview-card.js'
import { quote, roomIn } from './quote.js'

/** What to show besides the request itself. */
export interface RequestNotes {
  /** How many requests wait after this one. */
  readonly more: number
  /** The arguments are shown as edited by the user; the server's message is about the original ones. */
  readonly edited?: boolean
}

/** The rows that the card's own lines and the prompt below take. */
const OWN_ROWS = 13

/** How much of a request fits on a screen next to everything else; with a preview, each of the two gets half of it. */
export function screenLimits(columns: number, rows: number, hasPreview = false): DisplayLimits {
  const free = rows - OWN_ROWS
  return { maxLines: Math.max(4, hasPreview ? Math.floor(free / 2) : free), columns: roomIn(columns) }
}

/** What a user reads before answering: warning, tool, arguments, message. `columns` is the width of the terminal. */
export function renderRequest(view: ApprovalView, notes: RequestNotes, columns: number): string {
  const { more, edited = false } = notes
  const after = more > 0 ? ` (${more} more after this)` : ''
  const args = view.arguments ? quoteShown(view.arguments.text, columns) : '   | none\n'
  return [
    `\n!! Your approval is needed${after}: nothing runs without it.\n`,
    `   Tool\n${quoteShown(view.title, columns)}`,
    view.preview ? renderPreview(view.preview, columns) : '',
    `   Arguments${edited ? ', with your changes' : ''}\n${args}`,
    messageOf(view, edited, columns),
    edited ? '' : mandatesOf(view, columns),
    ...warningsOf(view).map((warning) => `!! ${warning}\n`),
  ].join('')
}

function messageOf({ message }: ApprovalView, edited: boolean, columns: number): string {
  if (!message) return ''
  return `   Message from the server${edited ? ', before your changes' : ''}\n${quoteShown(message, columns)}`
}

/** Numbered as the prompt takes them. */
function mandatesOf({ mandates }: ApprovalView, columns: number): string {
  if (mandates.length === 0) return ''
  const lines = mandates.map(({ label, mandate }, at) => {
    const limits = mandateLimits(mandate)
    return `${at + 1}  ${label.text}${limits === '' ? '' : ` (${limits})`}`
  })
  return `   For more than this call\n${quote(lines.join('\n'), columns)}`
}

function quoteShown({ text, hidden }: DisplayText, columns: number): string {
  return quote(hidden > 0 ? `${text}…` : text, columns)
}

function warningsOf(view: ApprovalView): string[] {
  const warnings: string[] = []
  if (view.suspicious)
    warnings.push(
      'It contains characters that are invisible or look like others. Invisible ones are written out: ⟨U+202E⟩.',
    )
  const masked = view.arguments?.masked ?? []
  if (masked.length > 0) {
    const names = masked.slice(0, MOST_NAMES).map((pointer) => (pointer === '' ? 'all' : nameOf(pointer)))
    const rest = masked.length - names.length
    const where = `${names.join(', ')}${rest > 0 ? ` and ${rest} more` : ''}`
    warnings.push(`The server masks some arguments; the tool gets the real values: ${where}`)
  }
  if (view.hidden > 0)
    warnings.push(
      `${view.hidden.toLocaleString('en')} characters are not shown. Type m to read everything before you can approve.`,
    )
  return warnings
}

/** A pointer contains keys of the arguments, so it is untrusted text too. */
const nameOf = (pointer: string): string => displayText(pointer, { multiline: false, maxLength: 40 }).text
const MOST_NAMES = 3
