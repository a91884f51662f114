import { CountersignError } from '@countersign/core'

/** @throws CountersignError `invalid-option` */
export function checkPositive(options: Readonly<Record<string, number | undefined>>, unit: string): void {
  for (const [option, value] of Object.entries(options)) {
    if (value === undefined || (Number.isFinite(value) && value > 0)) continue
    const message = `${option} must be a positive number of ${unit}.`
    throw new CountersignError('invalid-option', message, { option, value })
  }
}
