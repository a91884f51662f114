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
  if (text.normalize('NFKC') !== text) return undefined
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
  if (resolved === undefined || resolved.normalize('NFKC') !== resolved) return undefined
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
