import { CountersignError, isRecord } from '@countersign/core'
import { didYouMean } from './did-you-mean.js'
import { inWords } from './in-words.js'

/** What the value of one option must be. */
export interface Rule {
  /** Completes the sentence "must be ...". */
  readonly expected: string
  readonly isRequired?: boolean
  /** The rules of the options inside it, if its value is an object of options. */
  readonly group?: Readonly<Record<string, Rule>>
  fits(value: unknown): boolean
}

/** One rule for every option: an option without a rule is a type error. */
export type Rules<Options> = { readonly [Name in keyof Options]-?: Rule }

/**
 * Checks options when they are given, so that a mistake is not found only when the option is needed, or never. `where` is the function
 * that they were given to.
 *
 * @throws CountersignError `invalid-option` for a name that has no rule, or a value that does not fit; `data.option` is its path.
 */
export function checkOptions<Options extends object>(
  where: string,
  options: Options,
  rules: Rules<Options>,
): void {
  const { fits } = object
  if (!fits(options)) throw wrongOption(where, 'the options', object, options)
  checkGroup(where, '', options, rules)
}

function checkGroup(
  where: string,
  prefix: string,
  options: object,
  rules: Readonly<Record<string, Rule>>,
): void {
  for (const [name, value] of Object.entries(options)) {
    if (value === undefined || Object.hasOwn(rules, name)) continue
    const message = `${where}: there is no option ${prefix}${name}.${didYouMean(name, Object.keys(rules))} ${prefix === '' ? 'There are' : `In ${prefix.slice(0, -1)} there are`} ${Object.keys(rules).join(', ')}.`
    throw new CountersignError('invalid-option', message, { option: `${prefix}${name}` })
  }
  checkKnown(where, options, rules, prefix)
}

/** Like {@link checkOptions}, but ignores names that have no rule: they are somebody else's options. */
export function checkKnown(
  where: string,
  options: object,
  rules: Readonly<Record<string, Rule>>,
  prefix = '',
): void {
  for (const [name, rule] of Object.entries(rules)) {
    const value: unknown = Reflect.get(options, name)
    if (value === undefined && !rule.isRequired) continue
    if (!rule.fits(value)) throw wrongOption(where, prefix + name, rule, value)
    if (rule.group && isRecord(value)) checkGroup(where, `${prefix}${name}.`, value, rule.group)
  }
}

function wrongOption(where: string, option: string, { expected }: Rule, value: unknown): CountersignError {
  const given = typeof value === 'number' ? value : inWords(value)
  return new CountersignError('invalid-option', `${where}: ${option} must be ${expected}, not ${given}.`, {
    option,
    ...(typeof value === 'number' && { value }),
  })
}

/** The longest delay of a timer, in milliseconds: it fires at once if it is set to more. */
export const MAX_DELAY = 2 ** 31 - 1

const isNumber = (value: unknown): value is number => typeof value === 'number' && Number.isFinite(value)

export const text: Rule = { expected: 'text', fits: (value) => typeof value === 'string' }
export const flag: Rule = { expected: 'true or false', fits: (value) => typeof value === 'boolean' }
export const method: Rule = { expected: 'a function', fits: (value) => typeof value === 'function' }
/** Any object but a promise of one: what it resolves to would be missing. */
export const object: Rule = {
  expected: 'an object',
  fits: (value) => isRecord(value) && typeof value.then !== 'function',
}
export const wholeNumber: Rule = {
  expected: 'a positive integer',
  fits: (value) => isNumber(value) && Number.isSafeInteger(value) && value > 0,
}
export function wholeFrom(least: number, most = Number.MAX_SAFE_INTEGER): Rule {
  return {
    expected:
      most < Number.MAX_SAFE_INTEGER
        ? `an integer from ${least} to ${most}`
        : `an integer, at least ${least}`,
    fits: (value) => isNumber(value) && Number.isSafeInteger(value) && value >= least && value <= most,
  }
}
/** For a timer. */
export const milliseconds: Rule = {
  expected: `a positive number of milliseconds, at most ${MAX_DELAY}`,
  fits: (value) => isNumber(value) && value > 0 && value <= MAX_DELAY,
}
export const positiveNumber: Rule = {
  expected: 'a positive number',
  fits: (value) => isNumber(value) && value > 0,
}

/** Seconds until something expires. A Date can't hold a moment that is too far away. */
export const expiry: Rule = {
  expected: 'a positive number of seconds, at most 3153600000 (100 years), or "never"',
  fits: (value) => value === 'never' || (isNumber(value) && value > 0 && value <= 3_153_600_000),
}

export function numberFrom(least: number, most = Number.POSITIVE_INFINITY): Rule {
  return {
    expected:
      most < Number.POSITIVE_INFINITY ? `a number from ${least} to ${most}` : `a number, at least ${least}`,
    fits: (value) => isNumber(value) && value >= least && value <= most,
  }
}

export function oneOf(...values: readonly string[]): Rule {
  return {
    expected: values.map((value) => JSON.stringify(value)).join(' or '),
    fits: (value) => values.some((one) => one === value),
  }
}

export function listOf(what: string, { fits }: Pick<Rule, 'fits'>): Rule {
  return { expected: `a list of ${what}`, fits: (value) => Array.isArray(value) && value.every(fits) }
}

export function either(one: Rule, other: Rule): Rule {
  return {
    expected: `${one.expected} or ${other.expected}`,
    fits: (value) => one.fits(value) || other.fits(value),
  }
}

export function withMethods(what: string, ...names: readonly string[]): Rule {
  return {
    expected: `${what}, with the methods ${names.join(', ')}`,
    fits: (value) =>
      typeof value === 'object' &&
      value !== null &&
      names.every((name) => typeof Reflect.get(value, name) === 'function'),
  }
}

export function group<Options>(rules: Rules<Options>): Rule {
  return { ...object, expected: `an object with ${Object.keys(rules).join(', ')}`, group: rules }
}
