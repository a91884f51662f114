import { isRecord, sameJson } from '@countersign/core'

/** What the user may change. `keys` are top-level keys of the arguments. */
export interface Editable {
  readonly keys: 'all' | readonly string[]
  readonly input: unknown
}

export type Edited =
  | { readonly kind: 'unchanged' }
  /** All arguments, not only the changed ones. */
  | { readonly kind: 'changed'; readonly input: unknown }
  /** An error message. */
  | { readonly kind: 'unusable'; readonly message: string }

/** The text for the editor: all of the arguments, or only those that may be changed. */
export function editorText({ keys, input }: Editable): string {
  const shown = keys === 'all' || !isRecord(input) ? input : pick(input, keys)
  return `${JSON.stringify(shown, null, 2)}\n`
}

/** Parses the text from the editor. Validating against the tool's schema is up to the server. */
export function readEdited(editable: Editable, text: string): Edited {
  if (text === editorText(editable)) return { kind: 'unchanged' }
  const parsed = parse(text)
  if (!parsed) return unusable('What you saved is not JSON.')
  return merge(editable, parsed.value)
}

function merge({ keys, input }: Editable, value: unknown): Edited {
  if (isRecord(input) !== isRecord(value)) return unusable('The arguments have to stay a JSON object.')
  if (keys === 'all' || !isRecord(input) || !isRecord(value)) return comparedTo(input, value)
  const others = Object.keys(value).filter((key) => !keys.includes(key))
  if (others.length > 0) return unusable(`Only these may be changed: ${keys.join(', ')}.`)
  const kept = Object.entries(input).filter(([key]) => !keys.includes(key))
  return comparedTo(input, Object.fromEntries([...kept, ...Object.entries(value)]))
}

function comparedTo(input: unknown, edited: unknown): Edited {
  return sameJson(input, edited) ? { kind: 'unchanged' } : { kind: 'changed', input: edited }
}

function parse(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) }
  } catch {
    return undefined
  }
}

const unusable = (message: string): Edited => ({ kind: 'unusable', message })

const pick = (input: Record<string, unknown>, keys: readonly string[]) =>
  Object.fromEntries(Object.entries(input).filter(([key]) => keys.includes(key)))
