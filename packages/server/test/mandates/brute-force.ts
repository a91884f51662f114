// A second matcher, written from the documentation alone and as plainly as possible: character by character, with no regular expression
// and nothing of the first.
import type { Constraint } from '@countersign/core'

export function meetsByForce(input: unknown, where: readonly Constraint[]): boolean {
  for (const constraint of where) if (!meetsOne(find(input, constraint.field), constraint)) return false
  return true
}

function find(input: unknown, field: string | readonly string[]): { value: unknown } | undefined {
  const path = Array.isArray(field) ? field : [field]
  let found: unknown = input
  for (const key of path) {
    if (found === null || typeof found !== 'object' || Array.isArray(found)) return undefined
    const member = Object.getOwnPropertyDescriptor(found, key)
    if (member === undefined) return undefined
    found = member.value
  }
  return { value: found }
}

function meetsOne(found: { value: unknown } | undefined, constraint: Constraint): boolean {
  if (found === undefined) return false
  const { value } = found
  switch (typeof value) {
    case 'string':
      if ('is' in constraint) return same(constraint.is, value)
      if ('in' in constraint) return constraint.in.some((one) => same(one, value))
      return 'under' in constraint && isUnderByForce(value, constraint.under)
    case 'boolean':
      if ('is' in constraint) return same(constraint.is, value)
      return 'in' in constraint && constraint.in.some((one) => same(one, value))
    case 'number':
      if (!(value >= -9007199254740991 && value <= 9007199254740991)) return false
      if ('is' in constraint) return same(constraint.is, value)
      if ('in' in constraint) return constraint.in.some((one) => same(one, value))
      if ('atMost' in constraint) return !(value > constraint.atMost)
      return 'atLeast' in constraint && !(value < constraint.atLeast)
    default:
      return false
  }
}

function same(one: unknown, other: string | number | boolean): boolean {
  if (typeof one !== typeof other) return false
  if (typeof one === 'string' && typeof other === 'string') {
    if (one.length !== other.length) return false
    for (let at = 0; at < one.length; at++) if (one.charCodeAt(at) !== other.charCodeAt(at)) return false
    return true
  }
  return one === other
}

/** Scheme and host as written, up to the slash after them; undefined for a path. */
function schemeAndHost(text: string): string | undefined {
  const colon = text.indexOf(':')
  if (colon < 1 || text.slice(colon, colon + 3) !== '://') return undefined
  for (const [at, letter] of [...text.slice(0, colon)].entries()) {
    const isLetter = letter.toLowerCase() !== letter.toUpperCase() && letter.charCodeAt(0) < 128
    const isOther = '0123456789+.-'.includes(letter)
    if (!isLetter && !(at > 0 && isOther)) return undefined
  }
  const slash = text.indexOf('/', colon + 3)
  return slash === -1 ? `${text}/` : text.slice(0, slash + 1)
}

export function isUnderByForce(value: string, base: string): boolean {
  const host = schemeAndHost(base)
  const outer = host === undefined ? pathNames(base) : urlNames(base.length < host.length ? host : base, host)
  const inner = host === undefined ? pathNames(value) : urlNames(value, host)
  if (outer === undefined || inner === undefined) return false
  if (outer.isAbsolute !== inner.isAbsolute || inner.names.length <= outer.names.length) return false
  for (const [at, name] of outer.names.entries()) if (!same(name, inner.names[at] ?? '')) return false
  if (host !== undefined || outer.isAbsolute || outer.names.length > 0) return true
  // below the working directory
  const [first = ''] = value.split('/')
  return !first.includes(':') && first[0] !== '~'
}

interface Names {
  readonly isAbsolute: boolean
  readonly names: readonly string[]
}

function pathNames(text: string): Names | undefined {
  if (!isSafe(text)) return undefined
  for (let at = 0; at + 2 < text.length; at++)
    if (text[at] === '%' && isHex(text[at + 1]) && isHex(text[at + 2])) return undefined
  if (hasManyMarks(text) || text.normalize('NFKC') !== text) return undefined
  const isAbsolute = text[0] === '/'
  if (isAbsolute && text[1] === '/') return undefined
  const names: string[] = []
  for (const name of text.split('/')) {
    if (name === '' || name === '.') continue
    if (!isName(name)) return undefined
    names.push(name)
  }
  return { isAbsolute, names }
}

function urlNames(text: string, host: string): Names | undefined {
  if (!isSafe(text) || text.slice(0, host.length) !== host) return undefined
  let path = ''
  for (const letter of text.slice(host.length)) {
    if (letter === '?' || letter === '#') break
    path += letter
  }
  const resolved = resolve(path)
  if (resolved === undefined || hasManyMarks(resolved) || resolved.normalize('NFKC') !== resolved)
    return undefined
  const names = resolved.split('/')
  if (names[names.length - 1] === '') names.pop()
  for (const name of names) if (name === '.' || !isName(name)) return undefined
  return { isAbsolute: true, names }
}

/** Resolves escapes of spaces and of well-formed UTF-8 beyond ASCII; undefined for any other. */
function resolve(path: string): string | undefined {
  const bytes: number[] = []
  for (let at = 0; at < path.length; at++) {
    if (path[at] !== '%') {
      const point = path.codePointAt(at) ?? 0
      bytes.push(...new TextEncoder().encode(String.fromCodePoint(point)))
      if (point > 0xffff) at++
      continue
    }
    const [high, low] = [path[at + 1], path[at + 2]]
    if (!isHex(high) || !isHex(low)) return undefined
    const byte = Number.parseInt(`${high}${low}`, 16)
    if (byte !== 0x20 && byte < 0x80) return undefined
    bytes.push(byte)
    at += 2
  }
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Uint8Array.from(bytes))
    return isSafe(text) ? text : undefined
  } catch {
    return undefined
  }
}

function isHex(letter: string | undefined): boolean {
  return letter !== undefined && '0123456789abcdefABCDEF'.includes(letter)
}

function isSafe(text: string): boolean {
  if (text.length > 8192) return false
  // Control, format, unassigned, private and lone surrogate characters are of the category C.
  for (const letter of text)
    if (letter === '\\' || /^\p{C}$/u.test(letter) || /^\p{Default_Ignorable_Code_Point}$/u.test(letter))
      return false
  return true
}

function isName(name: string): boolean {
  if (name.startsWith('..')) return false
  // Without spaces, dots and parameters, something must remain.
  const [before = ''] = name.split(';')
  if (![...before].some((letter) => letter.trim() !== '' && letter !== '.')) return false
  return !name.endsWith('.') && !name.endsWith(' ')
}

/** The other direction: whether arguments may meet the conditions, as far as anybody can tell. */
export function mayMeetByForce(input: unknown, where: readonly Constraint[]): boolean {
  for (const constraint of where) {
    const path = Array.isArray(constraint.field) ? constraint.field : [constraint.field]
    let found: unknown = input
    let isHidden = false
    for (const key of path) {
      if (found === null || found === undefined) break
      isHidden = typeof found !== 'object' || Array.isArray(found)
      if (isHidden) break
      found = Object.getOwnPropertyDescriptor(found, key)?.value
    }
    if (isHidden) continue
    if (found === null || found === undefined || !mayMeetOne(found, constraint)) return false
  }
  return true
}

function mayMeetOne(value: unknown, constraint: Constraint): boolean {
  if ('under' in constraint) return typeof value !== 'string' || mayBeUnderByForce(value, constraint.under)
  if ('atMost' in constraint) return typeof value !== 'number' || !(value > constraint.atMost)
  if ('atLeast' in constraint) return typeof value !== 'number' || !(value < constraint.atLeast)
  const wanted: readonly unknown[] = 'is' in constraint ? [constraint.is] : constraint.in
  if (!wanted.some((one) => typeof one === typeof value)) return true
  return wanted.some((one) => alike(String(one), String(value)))
}

/** Whether a text has more than 30 combining marks in a row, not counting what is not seen. */
function hasManyMarks(text: string): boolean {
  let marks = 0
  for (const letter of text) {
    if (!isSafe(letter) && letter !== '\\') continue
    marks = /^[\p{M}\uff9e\uff9f]$/u.test(letter) ? marks + 1 : 0
    if (marks > 30) return true
  }
  return false
}

/** Whether two texts are the same to a program that ignores case, spaces at the ends, unseen characters and forms of characters. */
function alike(one: string, other: string): boolean {
  if (hasManyMarks(one) || hasManyMarks(other)) return true
  const [first, second] = [one, other].map((text) => {
    let seen = ''
    for (const letter of text.normalize('NFKC')) if (isSafe(letter) || letter === '\\') seen += letter
    const lower = seen.normalize('NFKC').trim().toLowerCase().toUpperCase().toLowerCase()
    let plain = ''
    for (const [at, letter] of [...lower].entries())
      if (letter !== '\u0307' || !'ijį'.includes([...lower][at - 1] ?? '-')) plain += letter
    return plain.normalize('NFKC')
  })
  return first === second
}

function mayBeUnderByForce(value: string, base: string): boolean {
  if (value.length > 8192) return true
  const host = schemeAndHost(base)
  const own = schemeAndHost(value)
  if ((host === undefined) !== (own === undefined)) return true
  if (host === undefined || own === undefined) return mayBePathUnder(value, base)
  if ([...value].some((letter) => letter === '\\' || !isSafe(letter))) return true
  let whole = ''
  for (const letter of value) {
    if (letter === '?' || letter === '#') break
    whole += letter
  }
  const origin = schemeAndHost(whole) ?? ''
  const [name, otherName] = [nameOfHost(host), nameOfHost(origin)]
  if (otherName === undefined) return true
  if (name !== otherName) return false
  const outer = urlNames(base.length < host.length ? host : base, host)
  const inner = urlNames(whole.length < origin.length ? origin : whole, origin)
  const withoutParameters = (names: readonly string[] = []) => names.map((one) => one.split(';')[0] ?? '')
  return inner === undefined || beginsAlike(withoutParameters(inner.names), withoutParameters(outer?.names))
}

/** The name of a host, if it is written in a way that all programs read alike. */
function nameOfHost(origin: string): string | undefined {
  const [scheme = '', rest = ''] = origin.split('://')
  const authority = rest.slice(0, -1)
  const bracket = authority.startsWith('[') ? authority.indexOf(']') : -1
  const colon = authority.indexOf(':', bracket + 1)
  const name = colon === -1 ? authority : authority.slice(0, colon)
  const port = colon === -1 ? '0' : authority.slice(colon + 1)
  const letters = 'abcdefghijklmnopqrstuvwxyz0123456789'
  const allowed = bracket === -1 ? `${letters}._-` : '0123456789abcdef:.[]'
  if (![...name.toLowerCase()].every((letter) => allowed.includes(letter))) return undefined
  if (port === '' || ![...port].every((digit) => '0123456789'.includes(digit))) return undefined
  if (!URL.canParse(`${scheme}://${authority}/`)) return undefined
  const known = new URL(`${scheme}://${authority}/`).hostname.toLowerCase()
  return known.endsWith('.') ? known.slice(0, -1) : known
}

function mayBePathUnder(value: string, base: string): boolean {
  const [outer, inner] = [pathNames(base), pathNames(value)]
  // A relative path depends on the folder in which it is read.
  if (outer === undefined || inner === undefined || outer.isAbsolute !== inner.isAbsolute) return true
  for (const [at, name] of inner.names.entries()) {
    // Streams, and short names: `PROGRA~1`.
    const colon = name.indexOf(':')
    if (at > 0 ? colon !== -1 : colon !== -1 && colon < name.length - 1) return true
    for (let tilde = 0; tilde < name.length - 1; tilde++)
      if (name[tilde] === '~' && '0123456789'.includes(name[tilde + 1] ?? '-')) return true
  }
  const [first = '', own = ''] = [inner.names[0], outer.names[0]]
  const isRoot = (name: string) => name.startsWith('~') || name.includes(':')
  if (!outer.isAbsolute && !alike(first, own) && (isRoot(first) || isRoot(own))) return true
  return beginsAlike(inner.names, outer.names)
}

function beginsAlike(names: readonly string[], first: readonly string[]): boolean {
  return first.every((name, at) => at < names.length && alike(name, names[at] ?? ''))
}
