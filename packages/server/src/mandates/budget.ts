import type { MandateBudget } from '@countersign/core'
import { isExactNumber, valueAt } from './constraint.js'

/** Whether a value is an amount: not negative, and neither too large nor too small to be added up exactly. */
export function isAmount(value: unknown): value is number {
  return isExactNumber(value) && (value === 0 || value >= 1e-6)
}

/** The amount of a call; undefined if its argument is no amount, or in another unit. */
export function amountOf(input: unknown, { field, unit, unitField }: MandateBudget): number | undefined {
  if (unitField !== undefined && valueAt(input, unitField) !== unit) return undefined
  const amount = valueAt(input, field)
  return isAmount(amount) ? amount : undefined
}

/**
 * What is spent after `amount` more, or after it was given back; undefined if that exceeds the budget. Decimals are added as decimals:
 * 0.1 and 0.2 are 0.3.
 */
export function spend(spent: number, amount: number, total: number): number | undefined {
  const sum = unitsOf(spent) + (amount < 0 ? -unitsOf(-amount) : unitsOf(amount))
  if (sum < 0n || sum > unitsOf(total)) return undefined
  const result = Number(`${sum}e-${PLACES}`)
  // A sum with more digits than a number can hold is not kept, so it is not spent either.
  return isAmount(result) && unitsOf(result) === sum ? result : undefined
}

/** The smallest amount has at most 24 decimals. */
const PLACES = 24

function unitsOf(amount: number): bigint {
  const [whole = '', decimals = ''] = String(amount).split('.')
  return BigInt(whole + decimals.padEnd(PLACES, '0'))
}
