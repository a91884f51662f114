import type { ApprovalView } from '@countersign/client'

/** The result of a prompt: a line, or how the user left it. */
export type Typed =
  | { readonly kind: 'line'; readonly text: string }
  | { readonly kind: 'interrupted' | 'ended' | 'escaped' }

/** The user's answer. `because` says why it counts as a denial if nobody typed `n`. */
export type Answer =
  | { readonly kind: 'once' | 'session' | 'edit' | 'more' }
  /** `at` counts the mandates of the request from 0. */
  | { readonly kind: 'mandate'; readonly at: number }
  | { readonly kind: 'deny'; readonly because?: string }

/** The possible answers to one request. */
export interface Offer {
  readonly once: boolean
  readonly session: boolean
  readonly edit: boolean
  /** Part of the request is not shown. Until it is, it can only be denied. */
  readonly more: boolean
  /** Which of the mandates can be chosen. */
  readonly mandates: readonly boolean[]
}

/** The possible answers to a request. One that cannot be approved once cannot be edited either. */
export function offerOf({ choices, edit, hidden, mandates }: ApprovalView): Offer {
  const allowed = choices.filter((choice) => !choice.disabled).map((choice) => choice.option)
  const once = allowed.includes('once')
  const editable = edit.status === 'offered' && !edit.disabled
  return {
    once,
    session: allowed.includes('session'),
    edit: once && editable,
    more: hidden > 0,
    mandates: mandates.map(({ disabled }) => !disabled),
  }
}

/** The prompt text: what may be typed. */
export function questionOf({ once, session, edit, more, mandates }: Offer): string {
  const numbers = mandates.flatMap((offered, at) => (offered ? [`[${at + 1}]`] : []))
  const words = [
    ...[more && '[m]ore', once && '[y]es', session && '[s]ession', '[n]o', edit && '[e]dit'],
    ...numbers,
  ]
  return words.filter((word) => word !== false).join(' / ')
}

/** Parses an answer. Only an offered word or its letter approves; anything else, or nothing, denies. */
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

/** The words of the prompt, each also by the letter in brackets. */
const words = new Map<string, Exclude<Answer['kind'], 'mandate'>>([
  ['y', 'once'],
  ['yes', 'once'],
  ['s', 'session'],
  ['session', 'session'],
  ['n', 'deny'],
  ['no', 'deny'],
  ['e', 'edit'],
  ['edit', 'edit'],
  ['m', 'more'],
  ['more', 'more'],
])

function parseLine(typed: string, offer: Offer): Answer {
  const word = words.get(typed)
  const at = /^\d{1,2}$/.test(typed) ? Number(typed) - 1 : undefined
  if (at !== undefined && offer.mandates[at]) return { kind: 'mandate', at }
  if (at !== undefined && offer.more && at in offer.mandates) return { kind: 'more' }
  if (word === 'deny') return { kind: 'deny' }
  if (word !== undefined && offer[word]) return { kind: word }
  // Approving something that was not shown completely shows the rest first.
  if (word !== undefined && offer.more) return { kind: 'more' }
  return { kind: 'deny', because: typed === '' ? 'an empty line' : 'not one of the answers' }
}
