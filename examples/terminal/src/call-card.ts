import { displayText, type ToolCallPart } from '@countersign/core'
import { inOneLine, withRest } from './quote.js'

/** A finished call in two lines; `undefined` for one that is not finished. */
export function renderCall(part: ToolCallPart): string | undefined {
  const outcome = outcomeOf(part)
  if (outcome === undefined) return undefined
  const name = displayText(part.name, { multiline: false }).text
  const changed = part.approval?.input
  const edited = changed === undefined ? '' : ' (edited by you)'
  return `* ${name} ${inOneLine(changed ?? part.input ?? {})}${edited}\n  ${outcome}\n`
}

function outcomeOf({ state, output, error, approval }: ToolCallPart): string | undefined {
  const reason = error?.message ? `: ${safe(error.message)}` : ''
  switch (state) {
    case 'complete':
      return output === undefined ? 'done' : `done: ${inOneLine(output)}`
    case 'error':
      return `failed${reason}`
    case 'denied':
      return approval?.approved === false ? 'denied, did not run' : `not allowed, did not run${reason}`
    case 'cancelled':
      return approval?.problem === undefined
        ? 'withdrawn, did not run'
        : `did not run (${approval.problem})${reason}`
    case 'awaiting-input':
    case 'input-streaming':
    case 'input-complete':
    case 'approval-requested':
    case 'approval-responded':
    case 'executing':
      return undefined
    default:
      return state satisfies never
  }
}

const safe = (text: string): string => withRest(displayText(text, { multiline: false, maxLength: 160 }))
