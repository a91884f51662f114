import { isExactJson } from '@countersign/core'
import { byteLength } from './bytes.js'

/** Limits of {@link parseStrictJson}. */
export interface StrictJsonLimits {
  /** How many arrays and objects may be nested. Default 64. */
  maxDepth?: number | undefined
  /** Size of the text in bytes of UTF-8. Default 1 MiB. */
  maxBytes?: number | undefined
}

/** Why {@link parseStrictJson} refused a text. */
export type StrictJsonProblem =
  | 'too-large'
  | 'too-deep'
  | 'invalid-json'
  | 'duplicate-key'
  | 'proto-key'
  | 'lone-surrogate'
  | 'non-finite-number'
  | 'unsafe-integer'
  | 'inexact-number'

/** A JSON value that every reader understands alike, or the first problem found. */
export type StrictJsonResult =
  | { ok: true; value: unknown }
  | { ok: false; code: StrictJsonProblem; message: string }

type Refusal = Extract<StrictJsonResult, { ok: false }>

/**
 * Parses JSON that is going to be signed: whatever two readers could understand differently is refused, not repaired.
 * Adds the rules of I-JSON (RFC 7493, section 2) to the grammar of RFC 8259: no duplicate keys, no lone
 * surrogates, no number of greater magnitude or precision than a double has, no integer beyond 2^53 - 1 in absolute value. A number is
 * judged by its value: `1e20` is an integer too. Also refuses the key `__proto__`. Time is linear in the length of the text.
 */
export function parseStrictJson(text: string, limits: StrictJsonLimits = {}): StrictJsonResult {
  const { maxDepth = 64, maxBytes = 1024 * 1024 } = limits
  if (isLargerThan(text, maxBytes))
    return refuse(
      'too-large',
      `The JSON text is larger than ${maxBytes} bytes. Send less, or a reference to it.`,
    )
  if (jsonDepthExceeds(text, maxDepth))
    return refuse('too-deep', `The JSON text is nested deeper than ${maxDepth} levels. Flatten it.`)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (error) {
    return refuse('invalid-json', `The text is not JSON: ${String(error)}`)
  }
  return findAmbiguity(text) ?? { ok: true, value }
}

/**
 * Whether JSON text nests arrays and objects deeper than `max`: one scan that builds nothing, to run before
 * any recursive code sees the value. Brackets in strings do not count. The text need not be valid JSON.
 */
export function jsonDepthExceeds(text: string, max: number): boolean {
  let depth = 0
  for (let at = 0; at < text.length; at++) {
    const char = text[at]
    if (char === '"') at = closingQuote(text, at)
    else if (char === '{' || char === '[') {
      if (++depth > max) return true
    } else if (char === '}' || char === ']') depth--
  }
  return false
}

/** `text` is known to be valid JSON, so this scan needs no grammar: only where keys are and where strings and numbers end. */
function findAmbiguity(text: string): Refusal | undefined {
  /** The keys seen in each open object, `undefined` for an open array. */
  const open: (Set<string> | undefined)[] = []
  let keyNext = false
  for (let at = 0; at < text.length; at++) {
    const char = text.charAt(at)
    let refusal: Refusal | undefined
    if (char === '"') {
      const stop = closingQuote(text, at)
      refusal = judgeString(text.slice(at, stop + 1), keyNext ? open.at(-1) : undefined)
      at = stop
    } else if (isNumberUnit(char)) {
      const stop = numberEnd(text, at)
      refusal = judgeNumber(text.slice(at, stop))
      at = stop - 1
    } else if (char === '{' || char === '[') {
      open.push(char === '{' ? new Set() : undefined)
      keyNext = char === '{'
    } else if (char === '}' || char === ']') open.pop()
    else if (char === ',') keyNext = open.at(-1) !== undefined
    else if (char === ':') keyNext = false
    else if (char === 't' || char === 'n') at += 3
    else if (char === 'f') at += 4
    if (refusal) return refusal
  }
  return undefined
}

function judgeString(json: string, keys: Set<string> | undefined): Refusal | undefined {
  const text = json.includes('\\') ? String(JSON.parse(json)) : json.slice(1, -1)
  if (/\p{Surrogate}/u.test(text))
    return refuse(
      'lone-surrogate',
      `The string ${quote(text)} has half of a surrogate pair, which is not text. Remove it.`,
    )
  if (!keys) return undefined
  if (text === '__proto__') return refuse('proto-key', 'The key "__proto__" is not allowed. Rename it.')
  if (keys.has(text))
    return refuse('duplicate-key', `The key ${quote(text)} appears twice in one object. Keep one of them.`)
  keys.add(text)
  return undefined
}

function judgeNumber(text: string): Refusal | undefined {
  const value = Number(text)
  if (!Number.isFinite(value))
    return refuse(
      'non-finite-number',
      `The number ${excerpt(text)} is too large for a double. Send it as a string.`,
    )
  if (Number.isInteger(value) && !Number.isSafeInteger(value))
    return refuse(
      'unsafe-integer',
      `The integer ${excerpt(text)} is beyond 2^53 - 1 and not exact. Send it as a string.`,
    )
  if (!isExactJson(text))
    return refuse(
      'inexact-number',
      `The number ${excerpt(text)} has digits that a double does not keep. Round it, or send it as a string.`,
    )
  return undefined
}

/** Where the string that starts at `at` ends; the last character if it never does. */
function closingQuote(text: string, at: number): number {
  let stop = at + 1
  while (stop < text.length && text[stop] !== '"') stop += text[stop] === '\\' ? 2 : 1
  return stop
}

function isNumberUnit(char: string): boolean {
  return char !== '' && '-+.0123456789eE'.includes(char)
}

function numberEnd(text: string, at: number): number {
  let stop = at
  while (isNumberUnit(text.charAt(stop))) stop++
  return stop
}

function isLargerThan(text: string, maxBytes: number): boolean {
  // A UTF-16 unit is one to three bytes of UTF-8, which settles most texts without encoding them.
  if (text.length > maxBytes) return true
  return text.length * 3 > maxBytes && byteLength(text) > maxBytes
}

function refuse(code: StrictJsonProblem, message: string): Refusal {
  return { ok: false, code, message }
}

function quote(text: string): string {
  return JSON.stringify(excerpt(text))
}

function excerpt(text: string): string {
  return text.length > 40 ? `${text.slice(0, 40)}...` : text
}
