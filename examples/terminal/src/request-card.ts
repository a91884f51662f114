import type { ApprovalView } from '@countersign/client'
import { displayText } from '@countersign/core'
import { quote } from './quote.js'

/** What is to be seen beside the request itself. */
export interface RequestNotes {
  /** How many requests wait after this one. */
  readonly more: number
  /** The arguments shown are as the person changed them; the server's message is about those before. */
  readonly edited?: boolean
}

/** What a person reads before answering: warning, tool, arguments, message. `columns` is the width of the terminal. */
export function renderRequest(view: ApprovalView, notes: RequestNotes, columns: number): string {
  const { more, edited = false } = notes
  const after = more > 0 ? ` (${more} more after this)` : ''
  const args = view.arguments ? quote(view.arguments.text.text, columns) : '   | none\n'
  return [
    `\n!! Your approval is needed${after}: nothing runs unless you say yes.\n`,
    `   Tool\n${quote(view.title.text, columns)}`,
    `   Arguments${edited ? ', with your changes' : ''}\n${args}`,
    messageOf(view, edited, columns),
    ...warningsOf(view).map((warning) => `!! ${warning}\n`),
  ].join('')
}

function messageOf({ message }: ApprovalView, edited: boolean, columns: number): string {
  if (!message) return ''
  return `   Message of the server${edited ? ', before your changes' : ''}\n${quote(message.text, columns)}`
}

function warningsOf(view: ApprovalView): string[] {
  const warnings: string[] = []
  const texts = [view.title, view.arguments?.text, view.message]
  if (texts.some((text) => text?.suspicious))
    warnings.push(
      'It contains characters that hide or resemble others. Hidden ones are written out: ⟨U+202E⟩.',
    )
  const masked = view.arguments?.masked ?? []
  if (masked.length > 0) {
    const where = masked.map((pointer) => (pointer === '' ? 'all' : displayText(pointer).text)).join(', ')
    warnings.push(`The server shows some arguments otherwise than the tool gets them: ${where}`)
  }
  return warnings
}
