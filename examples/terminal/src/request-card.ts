import type { ApprovalView } from '@countersign/client'
import { displayText } from '@countersign/core'
import { quote } from './quote.js'

/** Where a request stands among those that wait. */
export interface Place {
  readonly position: number
  readonly count: number
}

/** What a person reads before answering: warning, tool, arguments, message. `columns` is the width of the terminal. */
export function renderRequest(view: ApprovalView, { position, count }: Place, columns: number): string {
  const place = count > 1 ? ` (${position} of ${count})` : ''
  return [
    `\n!! Your approval is needed${place}: nothing runs unless you say yes.\n`,
    '   Tool\n',
    quote(view.title.text, columns),
    argumentsOf(view, columns),
    messageOf(view, columns),
    ...warningsOf(view).map((warning) => `!! ${warning}\n`),
  ].join('')
}

function argumentsOf(view: ApprovalView, columns: number): string {
  if (!view.arguments) return '   No arguments\n'
  return `   Arguments\n${quote(view.arguments.text.text, columns)}`
}

function messageOf({ message }: ApprovalView, columns: number): string {
  return message ? `   Message of the server\n${quote(message.text, columns)}` : ''
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
