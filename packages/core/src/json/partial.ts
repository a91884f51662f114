/** Options of {@link createJsonReader}. */
export interface JsonReaderOptions {
  /** How many arrays and objects may be open at once; deeper text is `invalid`. Default 20,000. */
  maxDepth?: number | undefined
}

/** `open` until `end()` is called or the text turns out not to be JSON. */
export type JsonReaderStatus = 'open' | 'complete' | 'invalid'

/**
 * Reads one JSON text as it arrives. What holds at every moment:
 *
 * 1. `value` depends on the text fed so far and not on how it was cut.
 * 2. Strings only grow, and never show half of a surrogate pair while open; arrays and objects gain members.
 * 3. Numbers, `true`, `false` and `null` are atomic: visible once they are finished.
 * 4. A value that was read never changes. Finished arrays and objects keep their identity from one `value` to the
 *    next; open ones are copied, and only when `value` is read after they changed.
 * 5. Feeding costs time linear in the length of the text.
 * 6. After `end()` the status is `complete` and `value` equals `JSON.parse` of the text, or the status is `invalid`
 *    where `JSON.parse` throws (or the text is deeper than `maxDepth`).
 */
export interface JsonReader {
  /** Appends text. Does nothing unless the status is `open`. */
  feed(delta: string): void
  /** Declares the text complete. */
  end(): void
  readonly status: JsonReaderStatus
  /** The value so far, `undefined` before anything is known. Of an invalid text, what stood before the fault. */
  readonly value: unknown
}

/** An open array or object, and where its member that is being read belongs. */
interface Level {
  node: unknown[] | Record<string, unknown>
  key: number | string
  published: boolean
}

/** What the next character is read as: a token, or more of an open string or literal (a number, `true`, `false` or `null`). */
type Place = 'token' | 'string' | 'literal'

const WHITESPACE = ' \t\n\r'
const PUNCTUATION = ',:]}'
const ENDS_LITERAL = `${WHITESPACE}${PUNCTUATION}[{"`

/** Creates a reader for one JSON text, for instance the streamed arguments of a tool call. */
export function createJsonReader({ maxDepth = 20_000 }: JsonReaderOptions = {}): JsonReader {
  // The document is the only item of an array that is never closed, so that every value has a place to go.
  const root: Level = { node: [], key: 0, published: false }
  const outer: Level[] = []
  let level = root
  let status: JsonReaderStatus = 'open'
  let place: Place = 'token'
  /** What may come next: punctuation, `v` for a value, `k` for a key. */
  let expected = 'v'
  /** The open key, string or literal: a rope, so nothing here may index into it. */
  let text = ''
  let isKey = false
  /** The last UTF-16 unit of `text`. */
  let lastUnit = 0
  /** An escape sequence that has begun, from its backslash on. */
  let escaped = ''

  function feed(delta: string): void {
    let at = 0
    while (at < delta.length && status === 'open') {
      if (place === 'string') at = readString(delta, at)
      else if (place === 'literal') at = readLiteral(delta, at)
      else at = readToken(delta, at)
    }
  }

  function end(): void {
    if (status === 'open' && place === 'literal') finishLiteral()
    if (status === 'open') status = place === 'token' && expected === '' ? 'complete' : 'invalid'
  }

  /** Returns where reading goes on: a literal's first character is read again as part of it. */
  function readToken(delta: string, at: number): number {
    const char = delta.charAt(at)
    if (WHITESPACE.includes(char)) return at + 1
    const begins = char === '"' && expected.includes('k') ? 'k' : 'v'
    if (!expected.includes(PUNCTUATION.includes(char) ? char : begins)) fail()
    else if (char === '[') open([], 0, 'v]')
    else if (char === '{') open({}, '', 'k}')
    else if (char === ']' || char === '}') close()
    else if (char === ':') expected = 'v'
    else if (char === ',') nextMember()
    else {
      text = ''
      lastUnit = 0
      isKey = begins === 'k'
      place = char === '"' ? 'string' : 'literal'
      if (place === 'literal') return at
    }
    return at + 1
  }

  function append(piece: string): void {
    if (piece === '') return
    text += piece
    lastUnit = piece.charCodeAt(piece.length - 1)
  }

  function readString(delta: string, at: number): number {
    if (escaped !== '') {
      escaped += delta.charAt(at)
      if (escaped.length === (escaped.startsWith('\\u') ? 6 : 2)) finishEscape()
      return at + 1
    }
    let stop = at
    while (stop < delta.length && isPlain(delta.charCodeAt(stop))) stop++
    append(delta.slice(at, stop))
    if (stop === delta.length) return stop
    const char = delta.charAt(stop)
    if (char === '"') finishString()
    else if (char === '\\') escaped = char
    else fail()
    return stop + 1
  }

  function finishEscape(): void {
    const char = parse(`"${escaped}"`)
    if (typeof char === 'string') append(char)
    escaped = ''
  }

  function finishString(): void {
    if (!isKey) finishValue(text)
    else {
      level.key = text
      place = 'token'
      expected = ':'
    }
  }

  function readLiteral(delta: string, at: number): number {
    let stop = at
    while (stop < delta.length && !ENDS_LITERAL.includes(delta.charAt(stop))) stop++
    append(delta.slice(at, stop))
    if (stop < delta.length) finishLiteral()
    return stop
  }

  function finishLiteral(): void {
    const value = parse(text)
    if (status === 'open') finishValue(value)
  }

  function open(node: Level['node'], key: Level['key'], first: string): void {
    if (outer.length >= maxDepth) fail()
    else {
      outer.push(level)
      level = { node, key, published: false }
      expected = first
    }
  }

  function close(): void {
    const { node } = level
    level = outer.pop() ?? root
    finishValue(node)
  }

  function finishValue(value: unknown): void {
    put(level, value)
    place = 'token'
    expected = level === root ? '' : typeof level.key === 'number' ? ',]' : ',}'
  }

  function nextMember(): void {
    const isItem = typeof level.key === 'number'
    if (typeof level.key === 'number') level.key++
    expected = isItem ? 'v' : 'k'
  }

  /** `JSON.parse` itself judges the short pieces: a number, a word, one escape. */
  function parse(json: string): unknown {
    try {
      return JSON.parse(json)
    } catch {
      fail()
    }
  }

  function fail(): void {
    status = 'invalid'
  }

  /** Puts what is open into what holds it, from the inside out, as far as something changed since the last time. */
  function publish(): unknown {
    if (place === 'string' && !isKey) put(level, isHighSurrogate(lastUnit) ? text.slice(0, -1) : text)
    let inner = level
    for (let depth = outer.length - 1; depth >= 0 && !inner.published; depth--) {
      inner.published = true
      const holder = outer[depth] ?? root
      put(holder, inner.node)
      inner = holder
    }
    root.published = true
    return Array.isArray(root.node) ? root.node[0] : undefined
  }

  return {
    feed,
    end,
    get status() {
      return status
    },
    get value() {
      return publish()
    },
  }
}

function isPlain(unit: number): boolean {
  return unit !== 0x22 && unit !== 0x5c && unit >= 0x20
}

function isHighSurrogate(unit: number): boolean {
  return (unit & 0xfc00) === 0xd800
}

/** Sets the member being read; a level that was published is copied first. */
function put(level: Level, value: unknown): void {
  const { key, published, node } = level
  // An array is a record of its indices as well.
  const before = node as Record<Level['key'], unknown>
  if (Object.is(before[key], value)) return
  if (published) level.node = Array.isArray(node) ? node.slice() : { ...node }
  level.published = false
  const after = level.node as Record<Level['key'], unknown>
  if (key !== '__proto__') after[key] = value
  else Object.defineProperty(after, key, { value, configurable: true, enumerable: true, writable: true })
}
