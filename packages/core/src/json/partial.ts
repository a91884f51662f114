/** Options of {@link createJsonReader}. */
export interface JsonReaderOptions {
  /** Maximum number of arrays and objects open at once; deeper text is `invalid`. Default 20,000. */
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
  /** The value so far; `undefined` before anything is known. For invalid text, the value before the fault. */
  readonly value: unknown
}

/** An open array or object, and the key or index of the member being read. */
interface Level {
  node: unknown[] | Record<string, unknown>
  key: number | string
  published: boolean
}

/** How the next character is read: as a token, or as more of an open string or literal (a number, `true`, `false` or `null`). */
type Place = 'token' | 'string' | 'literal'

const WHITESPACE = ' \t\n\r'
const PUNCTUATION = ',:]}'
const ENDS_LITERAL = `${WHITESPACE}${PUNCTUATION}[{"`

/** Creates a reader for one JSON text, such as the streamed arguments of a tool call. */
export function createJsonReader({ maxDepth = 20_000 }: JsonReaderOptions = {}): JsonReader {
  return new Reader(maxDepth)
}

class Reader implements JsonReader {
  // The document is the only item of an array that is never closed, so that every value has a parent.
  readonly #root: Level = { node: [], key: 0, published: false }
  readonly #outer: Level[] = []
  readonly #maxDepth: number
  #level = this.#root
  #status: JsonReaderStatus = 'open'
  #place: Place = 'token'
  /** What may come next: punctuation, `v` for a value, `k` for a key. */
  #expected = 'v'
  /** The open key, string or literal. Never indexed: that would flatten V8's rope on every delta. */
  #text = ''
  #isKey = false
  /** The last UTF-16 unit of `#text`. */
  #lastUnit = 0
  /** An unfinished escape sequence, including its backslash. */
  #escaped = ''

  constructor(maxDepth: number) {
    this.#maxDepth = maxDepth
  }

  get status(): JsonReaderStatus {
    return this.#status
  }

  get value(): unknown {
    return this.#publish()
  }

  feed(delta: string): void {
    let at = 0
    while (at < delta.length && this.#status === 'open') {
      if (this.#place === 'string') at = this.#readString(delta, at)
      else if (this.#place === 'literal') at = this.#readLiteral(delta, at)
      else at = this.#readToken(delta, at)
    }
  }

  end(): void {
    if (this.#status === 'open' && this.#place === 'literal') this.#finishLiteral()
    if (this.#status === 'open')
      this.#status = this.#place === 'token' && this.#expected === '' ? 'complete' : 'invalid'
  }

  /** Returns the next index to read. The first character of a literal is read again, as part of it. */
  #readToken(delta: string, at: number): number {
    const char = delta.charAt(at)
    if (WHITESPACE.includes(char)) return at + 1
    const begins = char === '"' && this.#expected.includes('k') ? 'k' : 'v'
    if (!this.#expected.includes(PUNCTUATION.includes(char) ? char : begins)) this.#fail()
    else if (char === '[') this.#open([], 0, 'v]')
    else if (char === '{') this.#open({}, '', 'k}')
    else if (char === ']' || char === '}') this.#close()
    else if (char === ':') this.#expected = 'v'
    else if (char === ',') this.#nextMember()
    else {
      this.#text = ''
      this.#lastUnit = 0
      this.#isKey = begins === 'k'
      this.#place = char === '"' ? 'string' : 'literal'
      if (this.#place === 'literal') return at
    }
    return at + 1
  }

  #append(piece: string): void {
    if (piece === '') return
    this.#text += piece
    this.#lastUnit = piece.charCodeAt(piece.length - 1)
  }

  #readString(delta: string, at: number): number {
    if (this.#escaped !== '') {
      this.#escaped += delta.charAt(at)
      if (this.#escaped.length === (this.#escaped.startsWith('\\u') ? 6 : 2)) this.#finishEscape()
      return at + 1
    }
    let stop = at
    while (stop < delta.length && isPlain(delta.charCodeAt(stop))) stop++
    this.#append(delta.slice(at, stop))
    if (stop === delta.length) return stop
    const char = delta.charAt(stop)
    if (char === '"') this.#finishString()
    else if (char === '\\') this.#escaped = char
    else this.#fail()
    return stop + 1
  }

  #finishEscape(): void {
    const char = this.#parse(`"${this.#escaped}"`)
    if (typeof char === 'string') this.#append(char)
    this.#escaped = ''
  }

  #finishString(): void {
    if (!this.#isKey) this.#finishValue(this.#text)
    else {
      this.#level.key = this.#text
      this.#place = 'token'
      this.#expected = ':'
    }
  }

  #readLiteral(delta: string, at: number): number {
    let stop = at
    while (stop < delta.length && !ENDS_LITERAL.includes(delta.charAt(stop))) stop++
    this.#append(delta.slice(at, stop))
    if (stop < delta.length) this.#finishLiteral()
    return stop
  }

  #finishLiteral(): void {
    const value = this.#parse(this.#text)
    if (this.#status === 'open') this.#finishValue(value)
  }

  #open(node: Level['node'], key: Level['key'], first: string): void {
    if (this.#outer.length >= this.#maxDepth) this.#fail()
    else {
      this.#outer.push(this.#level)
      this.#level = { node, key, published: false }
      this.#expected = first
    }
  }

  #close(): void {
    const { node } = this.#level
    this.#level = this.#outer.pop() ?? this.#root
    this.#finishValue(node)
  }

  #finishValue(value: unknown): void {
    put(this.#level, value)
    this.#place = 'token'
    this.#expected = this.#level === this.#root ? '' : typeof this.#level.key === 'number' ? ',]' : ',}'
  }

  #nextMember(): void {
    const isItem = typeof this.#level.key === 'number'
    if (typeof this.#level.key === 'number') this.#level.key++
    this.#expected = isItem ? 'v' : 'k'
  }

  /** Leaves short pieces (a number, a word, one escape) to `JSON.parse`. */
  #parse(json: string): unknown {
    try {
      return JSON.parse(json)
    } catch {
      this.#fail()
    }
  }

  #fail(): void {
    this.#status = 'invalid'
  }

  /** Attaches open values to their parents, from the inside out, as far as anything changed since the last time. */
  #publish(): unknown {
    if (this.#place === 'string' && !this.#isKey)
      put(this.#level, isHighSurrogate(this.#lastUnit) ? this.#text.slice(0, -1) : this.#text)
    let inner = this.#level
    for (let depth = this.#outer.length - 1; depth >= 0 && !inner.published; depth--) {
      inner.published = true
      const holder = this.#outer[depth] ?? this.#root
      put(holder, inner.node)
      inner = holder
    }
    this.#root.published = true
    return Array.isArray(this.#root.node) ? this.#root.node[0] : undefined
  }
}

function isPlain(unit: number): boolean {
  return unit !== 0x22 && unit !== 0x5c && unit >= 0x20
}

function isHighSurrogate(unit: number): boolean {
  return (unit & 0xfc00) === 0xd800
}

/** Sets the member being read. A level that was published is copied first. */
function put(level: Level, value: unknown): void {
  const { key, published, node } = level
  // The cast holds for arrays too: they are records of their indices.
  const before = node as Record<Level['key'], unknown>
  if (Object.is(before[key], value)) return
  if (published) level.node = Array.isArray(node) ? node.slice() : { ...node }
  level.published = false
  const after = level.node as Record<Level['key'], unknown>
  if (key !== '__proto__') after[key] = value
  else Object.defineProperty(after, key, { value, configurable: true, enumerable: true, writable: true })
}
