import type { AnswerResult } from '@countersign/client'
import { displayText } from '@countersign/core'

/** What to tell a user whose answer had no effect; `undefined` if it had. */
export function renderAnswerResult(result: AnswerResult): string | undefined {
  switch (result.status) {
    case 'sent':
    case 'waiting':
      return undefined
    // the error of a run is shown once, by the code that waits for the run
    case 'failed':
      return undefined
    case 'already-answered':
      return 'This was already answered. The first answer counts; yours was not used.'
    case 'not-found':
    case 'closed':
      return 'This request is closed. Your answer was not used.'
    case 'expired':
      return 'The request has expired. Your answer was not used; ask again.'
    case 'refused':
      return `The answer was refused (${result.code})${result.reason ? `: ${safe(result.reason)}` : ''}`
    default:
      return result satisfies never
  }
}

const safe = (text: string): string => displayText(text, { multiline: false, maxLength: 300 }).text
