import { approvalView } from '@countersign/client'
import type { ToolCallPart } from '@countersign/core'
import { marks, text, times } from './shapes.js'

/** Arguments of a call that a page shows to be approved. */
export const shownArguments: Readonly<Record<string, (bytes: number) => string>> = {
  'a long text': (bytes) => JSON.stringify({ to: text(bytes) }),
  'a text of marks': (bytes) => JSON.stringify({ to: marks(bytes) }),
  'a number of very many digits': (bytes) => `{"to":1.${'0'.repeat(bytes)}1}`,
  'very many numbers': (bytes) => `[${times(bytes / 6, () => '1.001').join()}]`,
  'very many members': (bytes) => JSON.stringify(times(bytes / 12, (index) => ({ [`k${index}`]: index }))),
}

export function showArguments(json: string): void {
  const part: ToolCallPart = {
    ...{ type: 'tool-call', id: 'c', name: 'send', arguments: json, state: 'approval-requested' },
    approval: { id: 'a', needsApproval: true, options: ['deny', 'once'] },
  }
  for (const fields of [false, true]) approvalView(part, { fields, maxLength: 2000, maxLines: 32 })
}
