/** A piece of text as it may be shown. The pieces in order, put together, are the text shown. */
export type DisplaySegment =
  /** Text with nothing hidden in it. */
  | { type: 'text'; text: string }
  /** One character that has no shape of its own or changes its surroundings, written out: `⟨U+202E⟩`. */
  | { type: 'escaped'; text: string; codePoint: number }
  /** A word whose letters come from scripts that look alike, such as a Cyrillic letter in a Latin word. */
  | { type: 'mixed-script'; text: string; scripts: readonly string[] }

/** Text made safe to show to the person who decides. */
export interface DisplayText {
  /** For a page: each piece as the text of an element of its own (`<bdi>`), never as markup. */
  segments: readonly DisplaySegment[]
  /** For a terminal: the pieces as one string; lines with right-to-left letters are between U+2068 and U+2069. */
  text: string
  /** How many characters (code points) at the end are not shown. */
  hidden: number
  /** Whether anything in the whole text, shown or not, was escaped or mixes scripts. Line ends and tabs do not count. */
  suspicious: boolean
}

/** Options of {@link displayText} and {@link displayJson}. */
export interface DisplayOptions {
  /** Keep line feeds and tabs; otherwise they are written out like other controls. Default true. */
  multiline?: boolean | undefined
  /** How many characters (code points) are shown at most; the cut is never inside a grapheme. Default: all. */
  maxLength?: number | undefined
}

/**
 * Makes visible what a text could hide: controls, bidirectional controls, characters without width, tags, variation
 * selectors, line and paragraph separators, blanks that are no ordinary space, unassigned and private characters,
 * halves of surrogate pairs. Emoji sequences stay whole. Words that mix scripts are marked: Latin, Cyrillic, Greek and
 * others whose letters look alike. Time is linear in the length of the text.
 */
export function displayText(text: string, options: DisplayOptions = {}): DisplayText {
  const { multiline = true, maxLength = Number.POSITIVE_INFINITY } = options
  const whole = scan(text, multiline)
  const cut = findCut(text, maxLength)
  const { segments } = cut < text.length ? scan(text.slice(0, cut), multiline) : whole
  return {
    segments,
    text: isolateLines(segments.map((segment) => segment.text).join('')),
    hidden: countCodePoints(text.slice(cut)),
    suspicious: whole.suspicious,
  }
}

/**
 * {@link displayText} of a JSON value, printed with an indentation of two spaces (which stops growing at 32 levels), or in
 * one line with `multiline: false`. Keys and strings are quoted as in JSON, where a line end is `\n` and a tab `\t`; other
 * controls are shown, and counted as suspicious, as displayText does. `undefined` is the empty text.
 */
export function displayJson(value: unknown, options: DisplayOptions = {}): DisplayText {
  return displayText(value === undefined ? '' : printJson(value, options.multiline ?? true), options)
}

const notPlain = /[^ -~\n\t]/
const notPlainInOneLine = /[^ -~]/

/**
 * Finds emoji sequences (to keep whole what would be hidden characters elsewhere), hidden characters and words. The
 * repetitions are bounded, because a repetition without bounds overflows the stack of the matcher on very long words.
 */
const token =
  /(?:[0-9#*]\uFE0F\u20E3|\p{Extended_Pictographic}\p{Emoji_Modifier}?[\uFE0E\uFE0F]?(?:\u200D\p{Extended_Pictographic}\p{Emoji_Modifier}?\uFE0F?){0,9})|(?<hidden>[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u1680\u2000-\u200A\u205F\u2800])|(?<word>(?:(?!\p{Default_Ignorable_Code_Point})[\p{L}\p{M}\p{N}]){1,64})/gu

const lookAlikeScripts = [
  ['Latin', /\p{Script=Latin}/u],
  ['Cyrillic', /\p{Script=Cyrillic}/u],
  ['Greek', /\p{Script=Greek}/u],
  ['Coptic', /\p{Script=Coptic}/u],
  ['Armenian', /\p{Script=Armenian}/u],
  ['Cherokee', /\p{Script=Cherokee}/u],
  ['Lisu', /\p{Script=Lisu}/u],
] as const

function scan(text: string, multiline: boolean): { segments: DisplaySegment[]; suspicious: boolean } {
  const segments: DisplaySegment[] = []
  let suspicious = false
  /** Everything before is in `segments`. */
  let done = 0
  let word = { start: 0, end: 0 }

  function push(start: number, end: number, segment?: DisplaySegment): void {
    if (start > done) segments.push({ type: 'text', text: text.slice(done, start) })
    if (segment) segments.push(segment)
    done = end
  }
  function finishWord(): void {
    const { start, end } = word
    const scripts = scriptsOf(text.slice(start, end))
    if (scripts.length < 2) return
    suspicious = true
    push(start, end, { type: 'mixed-script', text: text.slice(start, end), scripts })
  }

  const worthReading = (multiline ? notPlain : notPlainInOneLine).test(text)
  for (const match of worthReading ? text.matchAll(token) : []) {
    const start = match.index
    const end = start + match[0].length
    if (match.groups?.word !== undefined) {
      // A piece of a word that is longer than one match.
      if (start === word.end) word.end = end
      else {
        finishWord()
        word = { start, end }
      }
    } else if (match.groups?.hidden !== undefined) {
      finishWord()
      word = { start: end, end }
      const isLayout = match[0] === '\n' || match[0] === '\t'
      if (isLayout && multiline) continue
      suspicious ||= !isLayout && !text.startsWith('\r\n', start)
      push(start, end, writeOut(match[0]))
    }
  }
  finishWord()
  push(text.length, text.length)
  return { segments, suspicious }
}

function writeOut(char: string): DisplaySegment {
  const codePoint = char.codePointAt(0) ?? 0
  return { type: 'escaped', text: `⟨U+${codePoint.toString(16).toUpperCase().padStart(4, '0')}⟩`, codePoint }
}

function scriptsOf(word: string): string[] {
  return lookAlikeScripts.filter(([, letter]) => letter.test(word)).map(([script]) => script)
}

/** Letters that run from right to left would reorder what stands beside them. */
const rightToLeft = /[\u0590-\u08FF\uFB1D-\uFDFF\uFE70-\uFEFC\u{10800}-\u{10FFF}\u{1E800}-\u{1EFFF}]/u

/** Line by line, because an isolate ends with its line. */
function isolateLines(text: string): string {
  if (!rightToLeft.test(text)) return text
  const lines = text.split('\n')
  return lines.map((line) => (rightToLeft.test(line) ? `\u2068${line}\u2069` : line)).join('\n')
}

/** Where to cut so that at most `maxLength` code points remain and no grapheme is divided. */
function findCut(text: string, maxLength: number): number {
  if (text.length <= maxLength) return text.length
  let cut = 0
  for (let count = 0; count < maxLength && cut < text.length; count++) cut += codePointLength(text, cut)
  return cut < text.length ? graphemeStart(text, cut) : cut
}

/** Where `Intl.Segmenter` is missing, a grapheme may be cut, but never a surrogate pair. */
function graphemeStart(text: string, at: number): number {
  return 'Segmenter' in Intl ? (new Intl.Segmenter().segment(text).containing(at)?.index ?? at) : at
}

function countCodePoints(text: string): number {
  let count = 0
  for (let at = 0; at < text.length; at += codePointLength(text, at)) count++
  return count
}

function codePointLength(text: string, at: number): number {
  return (text.codePointAt(at) ?? 0) > 0xffff ? 2 : 1
}

const maxIndent = 32

type PrintTask = string | { value: unknown; depth: number }

/** Prints without recursion, so that no depth of nesting overflows the stack. */
function printJson(json: unknown, multiline: boolean): string {
  const printed: string[] = []
  const todo: PrintTask[] = [{ value: json, depth: 0 }]
  for (let task = todo.pop(); task !== undefined; task = todo.pop()) {
    if (typeof task === 'string') printed.push(task)
    else if (typeof task.value !== 'object' || task.value === null) printed.push(printScalar(task.value))
    else for (const next of printNode(task.value, task.depth, multiline).reverse()) todo.push(next)
  }
  return printed.join('')
}

function printNode(node: object, depth: number, multiline: boolean): PrintTask[] {
  const [opening, closing] = Array.isArray(node) ? '[]' : '{}'
  const entries = Object.entries(node)
  if (entries.length === 0) return [`${opening}${closing}`]
  const tasks: PrintTask[] = []
  for (const [key, value] of entries) {
    const before = tasks.length === 0 ? opening : ','
    const label = Array.isArray(node) ? '' : `${printScalar(key)}:${multiline ? ' ' : ''}`
    tasks.push(before + lineBreak(depth + 1) + label, { value, depth: depth + 1 })
  }
  return [...tasks, lineBreak(depth) + closing]

  function lineBreak(level: number): string {
    return multiline ? `\n${'  '.repeat(Math.min(level, maxIndent))}` : ''
  }
}

/** JSON's own escapes of what displayText writes out are taken back, so that both show it alike. */
function printScalar(value: unknown): string {
  const json = JSON.stringify(value) ?? 'null'
  return json.replace(/\\(?:u(....)|.)/g, (sequence, hex) => {
    if (hex !== undefined) return String.fromCharCode(Number.parseInt(hex, 16))
    return sequence === '\\b' ? '\b' : sequence === '\\f' ? '\f' : sequence
  })
}
