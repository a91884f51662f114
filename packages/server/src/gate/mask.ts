import { isRecord, type Preview, REDACTED } from '@countersign/core'
import { copyOf } from '../encoding/copy.js'
import { plainOf } from '../encoding/plain.js'
import type { ReadyCall } from '../tools/call.js'

/** Texts to find in a preview, at most: finding them takes time for each. */
const MAX_MASKS = 200

/** Shorter lines of a masked text are too common to be masked by themselves. */
const MIN_LINE = 4

/**
 * The texts and numbers of a call's arguments that `redact` doesn't show, in every form in which a preview may quote them. Undefined if
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
  if (found.size > MAX_MASKS) return undefined
  const forms = new Set([...found].flatMap(formsOf))
  return forms.size > MAX_MASKS ? undefined : [...forms]
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

/** A text as it is, inside JSON, in a URL, and line by line as in a diff. */
function formsOf(text: string): readonly string[] {
  const lines = text.includes('\n') ? text.split(/\r?\n/).filter((line) => line.length >= MIN_LINE) : []
  return [text, JSON.stringify(text).slice(1, -1), encodeURIComponent(text), ...lines]
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
      const found = byStart.get(text.charAt(at))?.find((one) => text.startsWith(one, at))
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
