import { isRecord, type Preview, REDACTED } from '@countersign/core'
import { utf8 } from '../encoding/bytes.js'
import { copyOf } from '../encoding/copy.js'
import { ignoreRejection } from '../encoding/in-words.js'
import { plainOf } from '../encoding/plain.js'
import type { ReadyCall } from '../tools/call.js'

/** Texts to find in a preview, and their forms, at most: finding them takes time for each. */
const MAX_MASKS = 200
const MAX_FORMS = 400

/** Forms times characters of the preview. A hundred million take about a second, in which the process does nothing else. */
const MAX_COMPARED = 2 ** 24

/**
 * Shorter texts, and shorter lines of a text, are not masked: they are everywhere, and can be guessed. The model chooses the arguments, so
 * it could blank what the user has to see, digit by digit.
 */
const MIN_MASK = 4

/** Shorter texts are masked as whole words only. */
const MIN_PART = 8

/**
 * The texts and numbers of a call's arguments that `redact` doesn't show, in the forms in which a preview of this length may quote
 * them. Undefined if there are too many.
 *
 * @throws as {@link redacted}
 */
export function maskedValues(
  call: ReadyCall,
  redact: (input: never) => unknown,
  characters: number,
): readonly string[] | undefined {
  const shown = redacted(call, redact)
  const found = new Set<string>()
  for (const real of [call.args, plainOf(call.input)]) collect(real, shown, found)
  const texts = new Set([...found].flatMap(linesOf).filter(({ length }) => length >= MIN_MASK))
  if (found.size > MAX_MASKS || texts.size > MAX_MASKS) return undefined
  const forms = new Set([...texts].flatMap(formsOf))
  return forms.size > MAX_FORMS || forms.size * characters > MAX_COMPARED ? undefined : [...forms]
}

/** @throws whatever `redact` throws, or an Error if it returns a promise. */
export function redacted({ name, input }: ReadyCall, redact: (input: never) => unknown): unknown {
  const shown = redact(copyOf(input) as never)
  if (ignoreRejection(shown)) throw new Error(`redact of ${name} must answer at once, not a promise.`)
  return shown
}

function collect(real: unknown, shown: unknown, found: Set<string>): void {
  if (found.size > MAX_MASKS) return
  if (typeof real === 'object' && real !== null) {
    const members = new Map(Object.entries(isRecord(shown) || Array.isArray(shown) ? shown : {}))
    for (const [key, member] of Object.entries(real)) collect(member, members.get(key), found)
  } else if (real !== shown && real !== '' && (typeof real === 'number' || typeof real === 'string')) {
    if (!isShortened(real, shown)) found.add(String(real).replace(/\p{Surrogate}/gu, '\ufffd'))
  }
}

/** `sanitizeArgs` cuts long texts without hiding what they are. */
function isShortened(real: unknown, shown: unknown): boolean {
  const cut = typeof shown === 'string' ? /^(.*)\.\.\. \((\d+) more characters\)$/s.exec(shown) : null
  if (cut === null || typeof real !== 'string') return false
  const [, start = '', rest] = cut
  return real.startsWith(start) && real.length - start.length === Number(rest)
}

/** A text, and its lines, as a diff has them. */
function linesOf(text: string): readonly string[] {
  return text.includes('\n') ? [text, ...text.split(/\r?\n/)] : [text]
}

/** A text as it is, inside JSON, and as the parts of a URL and forms have it. */
function formsOf(text: string): readonly string[] {
  const component = encodeURIComponent(text)
  const strict = percentEncoded(component, /[!'()*]/g)
  const form = percentEncoded(component, /[!'()~]/g).replaceAll('%20', '+')
  const parts = URL_PARTS.map((encoded) => percentEncoded(text, encoded))
  return [text, JSON.stringify(text).slice(1, -1), component, strict, form, ...parts]
}

/** What the URL standard encodes in a fragment, a query, a path (before 2023, and now), and a user name or password. */
const URL_PARTS = [
  /[^!-~]|["<>`]/gu,
  /[^!-~]|["#'<>]/gu,
  /[^!-~]|["#<>?`{}]/gu,
  /[^!-~]|["#<>?^`{}]/gu,
  /[^!-~]|["#/:;<=>?@[\\\]^`{|}]/gu,
]

function percentEncoded(text: string, encoded: RegExp): string {
  return text.replace(encoded, (one) => {
    const bytes = Array.from(utf8(one), (byte) => byte.toString(16).toUpperCase().padStart(2, '0'))
    return `%${bytes.join('%')}`
  })
}

/** A preview in which these texts are replaced, wherever they occur. */
export function withMasks(preview: Preview, masked: readonly string[]): unknown {
  const hide = hiding(masked)
  const numbers = new Set(masked)
  const copy = (value: unknown): unknown => {
    if (typeof value === 'string') return hide(value)
    if (typeof value === 'number') return numbers.has(String(value)) ? REDACTED : value
    if (Array.isArray(value)) return value.map(copy)
    if (!isRecord(value)) return value
    return Object.fromEntries(Object.entries(value).map(([key, member]) => [hide(key), copy(member)]))
  }
  // Kind and line numbers come from the tool, not from the arguments.
  if ('hunks' in preview) {
    const hunks = preview.hunks.map((hunk) => ({ ...hunk, lines: hunk.lines.map(hide) }))
    return { kind: preview.kind, name: copy(preview.name), hunks }
  }
  const { kind, ...members } = preview
  return { kind, ...Object.fromEntries(Object.entries(members).map(([key, value]) => [key, copy(value)])) }
}

/** Replaces texts in one pass, at each place the longest that fits. */
function hiding(masked: readonly string[]): (text: string) => string {
  return (text) => {
    const longest = new Uint32Array(text.length)
    for (const one of masked)
      find(one, text, (at) => {
        if (one.length > (longest[at] ?? 0) && isWhole(text, at, one)) longest[at] = one.length
      })
    let hidden = ''
    let kept = 0
    for (let at = 0; at < text.length; at++) {
      const length = longest[at] ?? 0
      if (length === 0) continue
      hidden += text.slice(kept, at) + REDACTED
      kept = at + length
      at = kept - 1
    }
    return hidden + text.slice(kept)
  }
}

/**
 * Finds a text in another, in a time that depends on their lengths alone (Knuth, Morris, Pratt): the model chooses both, and such that a
 * search by comparing at each place would stop the process for minutes.
 */
function find(one: string, text: string, found: (at: number) => void): void {
  if (one.length > text.length) return
  /** For each start of `one`, how long the longest of its ends is that is a start as well. */
  const ends = [0]
  const lengthen = (same: number, code: number): number => {
    let left = same
    while (left > 0 && one.charCodeAt(left) !== code) left = ends[left - 1] ?? 0
    return one.charCodeAt(left) === code ? left + 1 : 0
  }
  for (let at = 1, same = 0; at < one.length; at++) {
    same = lengthen(same, one.charCodeAt(at))
    ends.push(same)
  }
  for (let at = 0, same = 0; at < text.length; at++) {
    same = lengthen(same, text.charCodeAt(at))
    if (same === one.length) found(at + 1 - same)
  }
}

const WORD = /[\p{L}\p{N}_]/u

/** Whether a text that was found is a word by itself, or long enough to be masked as a part of one. */
function isWhole(text: string, at: number, one: string): boolean {
  if (one.length >= MIN_PART) return true
  const isJoined = (left: string, right: string) => WORD.test(left) && WORD.test(right)
  const end = at + one.length
  return (
    !isJoined(text.charAt(at - 1), one.charAt(0)) && !isJoined(one.charAt(one.length - 1), text.charAt(end))
  )
}
