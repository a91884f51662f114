import type { ApprovalView } from '@countersign/client'

/** What came of a prompt: a line, or one of the ways to leave it. */
export type Typed =
  | { readonly kind: 'line'; readonly text: string }
  | { readonly kind: 'interrupted' | 'ended' | 'escaped' }

/** What the person wants. `because` says it where nobody typed `n`. */
export type Answer =
  | { readonly kind: 'once' | 'session' | 'edit' }
  | { readonly kind: 'deny'; readonly because?: string }

/** What can be answered to one request. */
export interface Offer {
  readonly once: boolean
  readonly session: boolean
  readonly edit: boolean
}

/** What a request offers. One that may not be approved once offers no edit either. */
export function offerOf({ choices, edit }: ApprovalView): Offer {
  const allowed = choices.filter((choice) => !choice.disabled).map((choice) => choice.option)
  const once = allowed.includes('once')
  return { once, session: allowed.includes('session'), edit: once && edit.status === 'offered' }
}

/** The question itself: what may be typed. */
export function questionOf({ once, session, edit }: Offer): string {
  const words = [once && '[y]es', session && '[s]ession', '[n]o', edit && '[e]dit']
  return words.filter((word) => word !== false).join(' / ')
}

/** Reads an answer. Only a letter that is offered approves; whatever else was typed, or nothing, denies. */
export function parseAnswer(typed: Typed, offer: Offer): Answer {
  switch (typed.kind) {
    case 'line':
      return parseLine(typed.text.trim().toLowerCase(), offer)
    case 'interrupted':
      return { kind: 'deny', because: 'Ctrl-C' }
    case 'ended':
      return { kind: 'deny', because: 'the input ended' }
    case 'escaped':
      return { kind: 'deny', because: 'Escape' }
    default:
      return typed satisfies never
  }
}

function parseLine(letter: string, { once, session, edit }: Offer): Answer {
  if (letter === 'y' && once) return { kind: 'once' }
  if (letter === 's' && session) return { kind: 'session' }
  if (letter === 'e' && edit) return { kind: 'edit' }
  if (letter === 'n') return { kind: 'deny' }
  return { kind: 'deny', because: letter === '' ? 'an empty line' : 'not one of the answers' }
}
