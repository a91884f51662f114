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

/** Between two tokens: what may come next. After an opening bracket its closing one may come too. */
type Between = 'value' | 'first-item' | 'key' | 'first-key' | 'colon' | 'after-value'

/** What the next character is read as. A literal is a number, `true`, `false` or `null`. */
type Place = Between | 'in-key' | 'in-string' | 'in-literal'

/** An open array or object, and where its member that is being read belongs. */
type Level = { published: boolean } & (
  | { type: 'array'; node: unknown[]; key: number }
  | { type: 'object'; node: Record<string, unknown>; key: string }
)

const WHITESPACE = ' \t\n\r'
const ENDS_LITERAL = `${WHITESPACE},:[]{}"`

/** Creates a reader for one JSON text, for instance the streamed arguments of a tool call. */
export function createJsonReader({ maxDepth = 20_000 }: JsonReaderOptions = {}): JsonReader {
  // The document is the only item of an array that is never closed, so that every value has a place to go.
  const root: Extract<Level, { type: 'array' }> = { type: 'array', node: [], key: 0, published: false }
  const outer: Level[] = []
  let level: Level = root
  let status: JsonReaderStatus = 'open'
  let place: Place = 'value'
  /** The open key, string or literal: a rope, so nothing here may index into it. */
  let text = ''
  /** The last UTF-16 unit of `text`. */
  let lastUnit = 0
  /** An escape sequence that has begun, from its backslash on. */
  let escaped = ''

  function feed(delta: string): void {
    let at = 0
    while (at < delta.length && status === 'open') {
      if (place === 'in-key' || place === 'in-string') at = readString(delta, at)
      else if (place === 'in-literal') at = readLiteral(delta, at)
      else at = readBetween(place, delta, at)
    }
  }

  function end(): void {
    if (status !== 'open') return
    if (place === 'in-literal') finishLiteral()
    if (status === 'open') status = level === root && place === 'after-value' ? 'complete' : 'invalid'
  }

  function readBetween(where: Between, delta: string, at: number): number {
    const char = delta.charAt(at)
    if (WHITESPACE.includes(char)) return at + 1
    const closing = level.type === 'array' ? ']' : '}'
    switch (where) {
      case 'value':
        return beginValue(char, at)
      case 'first-item':
        if (char !== closing) return beginValue(char, at)
        close()
        break
      case 'key':
      case 'first-key':
        if (char === '"') begin('in-key')
        else if (char === closing && where === 'first-key') close()
        else fail()
        break
      case 'colon':
        if (char === ':') place = 'value'
        else fail()
        break
      case 'after-value':
        if (level === root) fail()
        else if (char === closing) close()
        else if (char === ',') nextMember()
        else fail()
        break
      default:
        where satisfies never
    }
    return at + 1
  }

  /** Returns where reading goes on: a literal's first character is read again as part of it. */
  function beginValue(char: string, at: number): number {
    if (char === '"') begin('in-string')
    else if (char === '[') open({ type: 'array', node: [], key: 0, published: false }, 'first-item')
    else if (char === '{') open({ type: 'object', node: {}, key: '', published: false }, 'first-key')
    else if (ENDS_LITERAL.includes(char)) fail()
    else {
      begin('in-literal')
      return at
    }
    return at + 1
  }

  function begin(next: Place): void {
    text = ''
    lastUnit = 0
    place = next
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
    if (place === 'in-string') finishValue(text)
    else {
      level.key = text
      place = 'colon'
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

  function open(next: Level, first: Place): void {
    if (outer.length >= maxDepth) fail()
    else {
      outer.push(level)
      level = next
      place = first
    }
  }

  function close(): void {
    const { node } = level
    level = outer.pop() ?? root
    finishValue(node)
  }

  function finishValue(value: unknown): void {
    put(level, value)
    place = 'after-value'
  }

  function nextMember(): void {
    if (level.type === 'array') {
      level.key++
      place = 'value'
    } else place = 'key'
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
    if (place === 'in-string') put(level, isHighSurrogate(lastUnit) ? text.slice(0, -1) : text)
    let inner = level
    for (let depth = outer.length - 1; depth >= 0 && !inner.published; depth--) {
      inner.published = true
      const holder = outer[depth] ?? root
      put(holder, inner.node)
      inner = holder
    }
    root.published = true
    return root.node[0]
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
  const current = level.type === 'array' ? level.node[level.key] : level.node[level.key]
  if (Object.is(current, value)) return
  if (level.published) copyNode(level)
  if (level.type === 'array') level.node[level.key] = value
  else if (level.key !== '__proto__') level.node[level.key] = value
  else
    Object.defineProperty(level.node, level.key, {
      value,
      configurable: true,
      enumerable: true,
      writable: true,
    })
}

function copyNode(level: Level): void {
  if (level.type === 'array') level.node = level.node.slice()
  else level.node = { ...level.node }
  level.published = false
}
