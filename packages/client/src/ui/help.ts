import type { ToolCallPart } from '@countersign/core'
import type { ChatClient } from '../client.js'
import { type NextStep, nextStep } from '../next-step.js'
import { focusComposer } from './focus.js'

/** What to tell the user about an answer that was refused or has not arrived, and a button if one helps. */
export interface Help {
  message: string
  action: { label: string; run: () => void } | undefined
}

/** `undefined` if nothing is wrong with the call. */
export function helpFor(client: Pick<ChatClient, 'retry'>, part: ToolCallPart): Help | undefined {
  const step = nextStep(part)
  if (!step) return undefined
  // the server's message names the argument; a call that has ended already shows it
  const why = step.next === 'correct' && part.error ? ` ${part.error.message}` : ''
  return { message: step.message + why, action: actionOf(client, step) }
}

function actionOf(client: Pick<ChatClient, 'retry'>, { next }: NextStep): Help['action'] {
  switch (next) {
    case 'retry':
      return { label: 'Retry', run: () => void client.retry() }
    case 'ask-again':
      return { label: 'Ask again', run: focusComposer }
    case 'reload':
      return { label: 'Reload', run: () => location.reload() }
    // how the user signs in is up to the application
    case 'sign-in':
    case 'check':
    // the card of the request is still there
    case 'confirm':
    case 'correct':
    case 'none':
      return undefined
    default:
      return next satisfies never
  }
}
