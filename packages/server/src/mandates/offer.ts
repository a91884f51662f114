import { isRecord, type MandateBudget, type MandateOffer, type OfferedMandate } from '@countersign/core'
import { expiry } from '../encoding/check-options.js'
import { amountOf, isAmount, spend } from './budget.js'
import { invalid, meetsAll, readConstraints, readField } from './constraint.js'

/** The mandates offered with an approval request, as its record keeps them. */
export interface OfferedMandates {
  /** The digest of the tool's schema and version when they were offered. */
  readonly tool: string
  readonly offers: readonly MandateOffer[]
}

/** The one of them that was chosen with an answer. */
export interface ChosenMandate {
  readonly tool: string
  readonly offer: MandateOffer
}

const MAX_OFFERS = 16
/** Characters of the conditions of one, as JSON: the model may decide how long a text in them is, and each call reads those that are kept. */
const MAX_WHERE = 16_384

/**
 * Reads what a tool's `mandates` returned. The result is a copy.
 *
 * @throws CountersignError `invalid-option`, naming the place.
 */
export function readOffers(value: unknown): readonly MandateOffer[] {
  if (!Array.isArray(value) || value.length > MAX_OFFERS)
    throw invalid('mandates', `a list of at most ${MAX_OFFERS}`, value)
  const offers = value.map((item, index) => readOffer(item, `mandates[${index}]`))
  const ids = new Set(offers.map(({ id }) => id))
  if (ids.size < offers.length) throw invalid('mandates', 'a list in which no id occurs twice', value)
  return offers
}

function readOffer(value: unknown, place: string): MandateOffer {
  if (!isRecord(value)) throw invalid(place, 'an object', value)
  const { id, label, where, uses, expiresIn, budget, decide, ...more } = value
  const [unknown] = Object.keys(more)
  if (unknown !== undefined)
    throw invalid(`${place}.${unknown}`, 'left out: a mandate has no such member', more[unknown])
  const isCount = typeof uses === 'number' && Number.isSafeInteger(uses) && uses > 0
  if (uses !== undefined && !isCount) throw invalid(`${place}.uses`, 'a positive integer', uses)
  const isTime = typeof expiresIn === 'number' && expiry.fits(expiresIn)
  if (expiresIn !== undefined && !isTime)
    throw invalid(
      `${place}.expiresIn`,
      'a positive number of seconds, at most 3153600000 (100 years)',
      expiresIn,
    )
  if (decide !== undefined && decide !== 'deny')
    throw invalid(`${place}.decide`, '"deny", or left out', decide)
  if (decide === 'deny' && (uses !== undefined || budget !== undefined))
    throw invalid(place, 'without uses and budget, because it refuses', value)
  return {
    id: textOf(id, 64, `${place}.id`),
    label: textOf(label, 200, `${place}.label`),
    where: readWhere(where, `${place}.where`),
    ...(isCount && { uses }),
    ...(isTime && { expiresIn }),
    ...(budget !== undefined && { budget: readBudget(budget, `${place}.budget`) }),
    ...(decide === 'deny' && { decide }),
  }
}

function readWhere(value: unknown, place: string): MandateOffer['where'] {
  const where = readConstraints(value, place)
  if (JSON.stringify(where).length <= MAX_WHERE) return where
  throw invalid(place, `at most ${MAX_WHERE} characters as JSON`, value)
}

function readBudget(value: unknown, place: string): MandateBudget {
  if (!isRecord(value)) throw invalid(place, 'an object', value)
  const { field, total, unit, unitField, ...more } = value
  const [unknown] = Object.keys(more)
  if (unknown !== undefined)
    throw invalid(`${place}.${unknown}`, 'left out: a budget has no such member', more[unknown])
  if (!isAmount(total) || total === 0)
    throw invalid(`${place}.total`, 'a positive number of at most 2^53 - 1', total)
  return {
    field: readField(field, `${place}.field`),
    total,
    unit: textOf(unit, 32, `${place}.unit`),
    ...(unitField !== undefined && { unitField: readField(unitField, `${place}.unitField`) }),
  }
}

function textOf(value: unknown, most: number, place: string): string {
  if (typeof value === 'string' && value !== '' && value.length <= most) return value
  throw invalid(place, `text of 1 to ${most} characters`, value)
}

/**
 * Whether arguments meet the conditions of an offer and its budget does not cover them: given with this call, it would let through more than
 * it says.
 */
export function exceedsBudget(input: unknown, { where, budget }: MandateOffer): boolean {
  if (budget === undefined || !meetsAll(input, where)) return false
  const amount = amountOf(input, budget)
  return amount === undefined || spend(0, amount, budget.total) === undefined
}

/** An offer as the user sees it. Its constraints stay here: they may contain arguments that the user must not read. */
export function shownOffer({ id, label, decide, uses, expiresIn, budget }: MandateOffer): OfferedMandate {
  return {
    ...{ id, label },
    ...(decide !== undefined && { decide }),
    ...(uses !== undefined && { uses }),
    ...(expiresIn !== undefined && { expiresIn }),
    ...(budget !== undefined && { budget: { total: budget.total, unit: budget.unit } }),
  }
}
