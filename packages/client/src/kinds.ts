import { CountersignError } from '@countersign/core'

/** What each option must be: types (`text` is a string that may be empty), words or ranges of numbers, separated by ` | `. `''` is not checked here. */
export type Kinds<Options> = { readonly [Name in keyof Options]-?: string }

/** A timer of more than 2^31 milliseconds would fire at once, and some wait for three times their option. */
const ranges: Readonly<Record<string, (value: number) => boolean>> = {
  'number above 0': (value) => value > 0,
  'number of milliseconds': (value) => value <= 2 ** 29,
  'number of milliseconds above 0': (value) => value > 0 && value <= 2 ** 29,
}

/** No option may be null, negative or NaN, and only a `text` may be empty. */
function fits(value: unknown, kind: string): boolean {
  if (value === null || (typeof value === 'number' && !(value >= 0))) return false
  const type = value === '' ? 'text' : Array.isArray(value) ? 'array' : typeof value
  return kind
    .replace('text', 'text | string')
    .split(' | ')
    .some((one) => one === value || one === type || (typeof value === 'number' && ranges[one]?.(value)))
}

/**
 * Invalid options fail where they are given (`where`), naming the option. Called only in development, in a condition that bundlers evaluate, so
 * that a production build has neither the tables nor this.
 */
export function checkKinds<Options extends object>(
  where: string,
  options: Options,
  kinds: Kinds<Options>,
): void {
  for (const [name, value] of Object.entries(options)) {
    const kind: unknown = Reflect.get(kinds, name)
    if (value === undefined || kind === '' || (typeof kind === 'string' && fits(value, kind))) continue
    throw invalidOption(where, name, kind ? `of the kind ${kind}` : 'left out: it does not exist')
  }
}

export function invalidOption(where: string, option: string, expected: string): CountersignError {
  const message = `${where}: the option \`${option}\` has to be ${expected}.`
  return new CountersignError('invalid-option', message, { option })
}
