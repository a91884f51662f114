import { isRecord, type Preview, REDACTED } from '@countersign/core'
import { utf8 } from '../encoding/bytes.js'
import { copyOf } from '../encoding/copy.js'
import { plainOf } from '../encoding/plain.js'
import type { ReadyCall } from '../tools/call.js'

/** Texts to find in a preview, and their forms, at most: finding them takes time for each. */
const MAX_MASKS = 200
const MAX_FORMS = 400

/**
 * Shorter texts, and shorter lines of a text, are not masked: they are everywhere, and can be guessed. The model chooses the arguments, so
 * it could blank what the user has to see, digit by digit.
 */
const MIN_MASK = 4

/** Shorter texts are masked as whole words only. */
const MIN_PART = 8

/**
 * The texts and numbers of a call's arguments that `redact` doesn't show, in the forms in which a preview may quote them. Undefined if
 * there are too many.
 *
 * @throws whatever `redact` throws
 */
export function maskedValues(
  call: ReadyCall,
  redact: (input: never) => unknown,
): readonly string[] | undefined {
  const shown: unknown = redact(copyOf(call.input) as never)
  const found = new Set<string>()
  for (const real of [call.args, plainOf(call.input)]) collect(real, shown, found)
  const texts = new Set([...found].flatMap(linesOf).filter(({ length }) => length >= MIN_MASK))
  if (found.size > MAX_MASKS || texts.size > MAX_MASKS) return undefined
  const forms = new Set([...texts].flatMap(formsOf))
  return forms.size > MAX_FORMS ? undefined : [...forms]
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
  const byStart = new Map<string, string[]>()
  for (const one of masked.toSorted((a, b) => b.length - a.length)) {
    const same = byStart.get(one.charAt(0))
    if (same === undefined) byStart.set(one.charAt(0), [one])
    else same.push(one)
  }
  return (text) => {
    let hidden = ''
    let kept = 0
    for (let at = 0; at < text.length; ) {
      const found = byStart.get(text.charAt(at))?.find((one) => isAt(text, at, one))
      if (found === undefined) {
        at++
        continue
      }
      hidden += text.slice(kept, at) + REDACTED
      at += found.length
      kept = at
    }
    return kept === 0 ? text : hidden + text.slice(kept)
  }
}

const WORD = /[\p{L}\p{N}_]/u

function isAt(text: string, at: number, one: string): boolean {
  if (!text.startsWith(one, at)) return false
  if (one.length >= MIN_PART) return true
  const isJoined = (left: string, right: string) => WORD.test(left) && WORD.test(right)
  const end = at + one.length
  return (
    !isJoined(text.charAt(at - 1), one.charAt(0)) && !isJoined(one.charAt(one.length - 1), text.charAt(end))
  )
}
