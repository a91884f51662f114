import type { MandateBudget } from './messages.js'

/**
 * A condition on one argument of a call, as data. `field` is a key, or the path to a nested one (`['invoice', 'total']`). An argument
 * that is missing, `null` or of another type never matches what lets a call through. What refuses or asks (denials, `block`, `ask`) also
 * matches whatever can't be decided: an argument of another type, an inexact number, a text that could be read in two ways.
 *
 * - `is`: exactly this text, number or boolean. Text is compared character by character.
 * - `in`: one of these.
 * - `atMost`, `atLeast`: a number, compared inclusively. Numbers beyond 2^53 - 1 are not exact and never match.
 * - `under`: a path or URL strictly below this one, by the text alone. Whatever could be read in two ways never matches.
 */
export type Constraint = { readonly field: string | readonly string[] } & (
  | { readonly is: string | number | boolean }
  | { readonly in: readonly (string | number | boolean)[] }
  | { readonly atMost: number }
  | { readonly atLeast: number }
  | { readonly under: string }
)

/**
 * A standing approval that is narrower than its tool: calls that meet every constraint run without an approval request, in this
 * conversation, until it has expired, is used up or is revoked. The application writes it; the user chooses it with an answer.
 */
export interface MandateOffer {
  /** Names it among those offered with one request. At most 64 characters. */
  readonly id: string
  /** What it allows, in words for the user, plain text. At most 200 characters. */
  readonly label: string
  /** All must be met. At most 16; an empty list matches every call of the tool. */
  readonly where: readonly Constraint[]
  /** How many calls it lets through, with the one it is chosen for. Default: no limit. */
  readonly uses?: number | undefined
  /** Seconds until it expires, at most 100 years. Default: as for session approvals, seven days; a denial never expires. */
  readonly expiresIn?: number | undefined
  /** An amount that its calls may reach together. */
  readonly budget?: MandateBudget | undefined
  /** `deny` refuses matching calls instead, without asking again: it is chosen with a denial, and overrules every approval. */
  readonly decide?: 'deny' | undefined
}
