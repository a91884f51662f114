import { isRecord, isThreadRecord } from '@countersign/core'

/** Whether a value from another tab has the expected shape. */
export type Check = (value: unknown) => boolean

export const anything: Check = () => true
export const nothing: Check = (value) => value === undefined || value === null
export const text: Check = (value) => typeof value === 'string'
export const flag: Check = (value) => typeof value === 'boolean'
export const count: Check = (value) => Number.isSafeInteger(value) && Number(value) >= 0

export const optional =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value)

export const either =
  (...checks: readonly Check[]): Check =>
  (value) =>
    checks.some((check) => check(value))

export const one =
  (...values: readonly unknown[]): Check =>
  (value) =>
    values.includes(value)

export const list =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check)

/** A record whose named members match. Members that may be missing are `optional`. */
export const shape =
  (members: Readonly<Record<string, Check>>): Check =>
  (value) =>
    isRecord(value) && Object.entries(members).every(([name, check]) => check(value[name]))

/** Messages, interrupts and a queue, as in a stored conversation. */
export const conversation: Check = (value) =>
  isRecord(value) && isThreadRecord({ version: 1, unsentOutputs: [], ready: [], ...value })

export const messages: Check = (value) => conversation({ messages: value, interrupts: [], queue: [] })
export const message: Check = (value) => messages([value])
export const queued: Check = (value) => conversation({ messages: [], interrupts: [], queue: [value] })
