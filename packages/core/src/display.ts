import { printJson } from './print-json.js'

/** One segment of a text that is safe to show. Concatenated in order, the segments are the displayed text. */
export type DisplaySegment =
  /** Text with nothing hidden in it. Its letters all run in one direction: left to right or right to left. */
  | { type: 'text'; text: string }
  /** One character that is invisible or affects its surroundings, written out: `⟨U+202E⟩`. */
  | { type: 'escaped'; text: string; codePoint: number }
  /** A long run of spaces, tabs or line ends, counted: `⟨80 line ends⟩`. `source` is the run itself. */
  | { type: 'blank'; text: string; source: string }
  /** A word whose letters come from scripts that look alike, such as a Cyrillic letter in a Latin word. */
  | { type: 'mixed-script'; text: string; scripts: readonly string[] }

/** Text that is safe to show to the user who decides. */
export interface DisplayText {
  /**
   * For a page: put each segment, as text and never as markup, into its own element (`<bdi>`), inside an
   * element with `dir="ltr"`. Then right-to-left letters stay in their place.
   */
  segments: readonly DisplaySegment[]
  /** For a terminal: all segments as one string. Segments with right-to-left letters are enclosed in U+2068 and U+2069. */
  text: string
  /** How many characters (code points) were cut off at the end. */
  hidden: number
  /** How many lines are shown, wrapped at `columns`. 0 for an empty text. */
  lines: number
  /** Whether anything in the whole text, shown or not, was escaped, counted or mixes scripts. Line ends and tabs do not count. */
  suspicious: boolean
}

/** How much of a text is shown. A grapheme is never cut. */
export interface DisplayLimits {
  /** Maximum number of characters (code points) shown, including escapes. Default: all. */
  maxLength?: number | undefined
  /** Maximum number of lines shown, including blank ones. Default: all. */
  maxLines?: number | undefined
  /**
   * The width of a line. A longer line counts as several. A tab counts as 4 columns, a non-ASCII character as
   * 2. Default: lines end only where the text has a line end.
   */
  columns?: number | undefined
}

/** Options of {@link displayText} and {@link displayJson}. */
export interface DisplayOptions extends DisplayLimits {
  /** Keep line feeds and tabs; otherwise they are escaped like other control characters. Default true. */
  multiline?: boolean | undefined
}

/**
 * Makes visible what a text could hide: control characters, bidirectional controls, zero-width characters,
 * tags, variation selectors, line and paragraph separators, unusual spaces, unassigned and private-use
 * characters, lone surrogates, and more than 4 combining marks on one letter. Runs of more than 32 columns of
 * spaces and tabs, and of more than 8 line ends, are counted. Emoji sequences stay whole. Words that mix
 * Latin, Cyrillic, Greek and other scripts with similar letters are marked. Right-to-left letters become
 * separate segments, so that they cannot reorder anything else. Takes linear time.
 */
export function displayText(text: string, options: DisplayOptions = {}): DisplayText {
  const { multiline = true } = options
  const whole = scan(text, multiline)
  const { end, lines } = measure(text, whole.segments, options)
  const { segments } = end < text.length ? scan(text.slice(0, end), multiline) : whole
  return {
    segments,
    text: segments.map(isolate).join(''),
    hidden: countCodePoints(text.slice(end)),
    lines,
    suspicious: whole.suspicious,
  }
}

/**
 * {@link displayText} of a JSON value, printed with an indentation of two spaces (up to 16 levels), or on one line
 * with `multiline: false`. Keys and strings are quoted as in JSON, with `\n` for a line end and `\t` for a tab; other
 * control characters are shown, and count as suspicious, as in displayText. `undefined` becomes an empty text.
 */
export function displayJson(value: unknown, options: DisplayOptions = {}): DisplayText {
  return displayText(value === undefined ? '' : printJson(value, options.multiline ?? true), options)
}

/** Matches a text that may hide something. Any other text is shown as it is. */
const notPlain = /[^ -~\n\t]|[ \t]{9}|\n[ \t\n]{8}/

/**
 * Matches emoji sequences (to keep characters in them that would be hidden elsewhere), long runs of blanks, hidden characters,
 * words, and other characters with their combining marks; a combining mark outside all of these is hidden. Repetitions are
 * bounded, because unbounded ones overflow the matcher's stack on very long words. U+FFFC and U+1D159 render as nothing.
 */
const token =
  /(?:[0-9#*]\uFE0F\u20E3|\p{Extended_Pictographic}\p{Emoji_Modifier}?[\uFE0E\uFE0F]?(?:\u200D\p{Extended_Pictographic}\p{Emoji_Modifier}?\uFE0F?){0,9})|(?<lines>(?:[ \t]{0,99}\n){9})|(?<spaces>[ \t]{33}|\t(?: {0,3}\t){8})|(?<hidden>[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\p{Mn}\p{Me}\u00A0\u1680\u2000-\u200A\u202F\u205F\u2800\u3000\uFFFC\u{1D159}])|(?<word>(?:(?!\p{Default_Ignorable_Code_Point})[\p{L}\p{Mc}\p{N}](?:(?!\p{Default_Ignorable_Code_Point})[\p{Mn}\p{Me}]){0,4}){1,64})|[\p{P}\p{S}](?:(?!\p{Default_Ignorable_Code_Point})[\p{Mn}\p{Me}]){1,4}/gu

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
  /** Everything before this index is in `segments`. */
  let done = 0
  let word = { start: 0, end: 0 }

  function push(start: number, end: number, segment?: DisplaySegment): void {
    if (start > done)
      for (const piece of byDirection(text.slice(done, start))) segments.push({ type: 'text', text: piece })
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

  for (const match of notPlain.test(text) ? text.matchAll(token) : []) {
    const { index: start, groups = {} } = match
    // Inside a run of blanks that was already counted.
    if (start < done) continue
    const end = start + match[0].length
    if (groups.word !== undefined) {
      // The continuation of a word that is longer than one match.
      if (start === word.end) word.end = end
      else {
        finishWord()
        word = { start, end }
      }
      continue
    }
    finishWord()
    word = { start: end, end }
    if (groups.lines !== undefined || groups.spaces !== undefined) {
      const run = blankRun(text, start, groups.lines !== undefined)
      suspicious = true
      push(start, start + run.length, countOut(run))
    } else if (groups.hidden !== undefined && groups.hidden !== '\n' && groups.hidden !== '\t') {
      suspicious ||= !text.startsWith('\r\n', start)
      push(start, end, writeOut(groups.hidden))
    }
  }
  finishWord()
  push(text.length, text.length)
  return { segments: multiline ? segments : segments.flatMap(inOneLine), suspicious }
}

/** The whole run that begins at `start`: up to its last line end, or of spaces and tabs only. */
function blankRun(text: string, start: number, withLines: boolean): string {
  const blanks = withLines ? /[ \t\n]*/y : /[ \t]*/y
  blanks.lastIndex = start
  const run = blanks.exec(text)?.[0] ?? ''
  return withLines ? run.slice(0, run.lastIndexOf('\n') + 1) : run
}

function countOut(run: string): DisplaySegment {
  const lineEnds = run.split('\n').length - 1
  const kind = run.includes('\t') ? 'spaces and tabs' : 'spaces'
  const text = lineEnds > 0 ? `⟨${lineEnds} line ends⟩\n` : `⟨${run.length} ${kind}⟩`
  return { type: 'blank', text, source: run }
}

function inOneLine(segment: DisplaySegment): DisplaySegment[] {
  if (segment.type === 'escaped' || segment.type === 'mixed-script') return [segment]
  const source = segment.type === 'blank' ? segment.source : segment.text
  return source.split(/([\n\t]| {33,})/).flatMap((piece, at): DisplaySegment[] => {
    if (at % 2 === 0) return piece === '' ? [] : [{ type: 'text', text: piece }]
    return [piece.startsWith(' ') ? countOut(piece) : writeOut(piece)]
  })
}

function writeOut(char: string): DisplaySegment {
  const codePoint = char.codePointAt(0) ?? 0
  return { type: 'escaped', text: `⟨U+${codePoint.toString(16).toUpperCase().padStart(4, '0')}⟩`, codePoint }
}

function scriptsOf(word: string): string[] {
  return lookAlikeScripts.filter(([, letter]) => letter.test(word)).map(([script]) => script)
}

/** Right-to-left letters would reorder their neighbours. */
const rightToLeft = /[\u0590-\u08FF\uFB1D-\uFDFF\uFE70-\uFEFC\u{10800}-\u{10FFF}\u{1E800}-\u{1EFFF}]+/gu
const leftToRight = /[^\P{L}\u0590-\u08FF\uFB1D-\uFDFF\uFE70-\uFEFC\u{10800}-\u{10FFF}\u{1E800}-\u{1EFFF}]/u

/**
 * Splits a text into segments of one direction. A line without left-to-right letters is one segment. In other lines,
 * each right-to-left phrase is one; signs and numbers, which could change places with it, are left out of it.
 */
function byDirection(text: string): string[] {
  if (text.search(rightToLeft) < 0) return [text]
  const pieces: string[] = []
  let rest = ''
  const add = (leading: string, phrase: string) => {
    if (rest + leading !== '') pieces.push(rest + leading)
    pieces.push(phrase)
    rest = ''
  }
  for (const [at, line] of text.split('\n').entries()) {
    if (at > 0) rest += '\n'
    let done = 0
    for (const { start, end } of phrasesIn(line)) {
      add(line.slice(done, start), line.slice(start, end))
      done = end
    }
    rest += line.slice(done)
  }
  return rest === '' ? pieces : [...pieces, rest]
}

function phrasesIn(line: string): { start: number; end: number }[] {
  const words = [...line.matchAll(rightToLeft)].map(({ index, 0: word }) => ({
    start: index,
    end: index + word.length,
  }))
  if (words.length > 0 && !leftToRight.test(line)) return [{ start: 0, end: line.length }]
  const phrases: { start: number; end: number }[] = []
  for (const word of words) {
    const last = phrases.at(-1)
    const isNext = last && word.start - last.end < 3 && /^[ ,.!?]*$/.test(line.slice(last.end, word.start))
    if (last && isNext) last.end = word.end
    else phrases.push(word)
  }
  return phrases
}

function isolate({ text }: DisplaySegment): string {
  return text.search(rightToLeft) < 0 ? text : `\u2068${text}\u2069`
}

/** Finds where to cut so that the limits hold and no grapheme is split, and counts the lines before that. */
function measure(
  text: string,
  segments: readonly DisplaySegment[],
  { maxLength = Infinity, maxLines = Infinity, columns = Infinity }: DisplayLimits,
): { end: number; lines: number } {
  if (text === '') return { end: 0, lines: 0 }
  let [at, length, lines, column] = [0, 0, 1, 0]
  for (const segment of segments) {
    const source = sourceOf(segment)
    for (const char of segment.text) {
      const width = char > '~' ? 2 : char === '\t' ? 4 : 1
      const isBreak = char === '\n' || column + width > columns
      column = char === '\n' ? 0 : isBreak ? width : column + width
      if (++length > maxLength || lines + Number(isBreak) > maxLines) {
        const end = source === undefined ? graphemeStart(text, at) : at
        return { end, lines: end === 0 ? 0 : lines }
      }
      lines += Number(isBreak)
      if (source === undefined) at += char.length
    }
    at += source?.length ?? 0
  }
  return { end: text.length, lines }
}

/** The original text of a segment; `undefined` if it is shown unchanged. */
function sourceOf(segment: DisplaySegment): string | undefined {
  switch (segment.type) {
    case 'escaped':
      return String.fromCodePoint(segment.codePoint)
    case 'blank':
      return segment.source
    case 'text':
    case 'mixed-script':
      return undefined
    default:
      return segment satisfies never
  }
}

/** Without `Intl.Segmenter` a grapheme may be cut, but never a surrogate pair. */
function graphemeStart(text: string, at: number): number {
  return 'Segmenter' in Intl ? (new Intl.Segmenter().segment(text).containing(at)?.index ?? at) : at
}

function countCodePoints(text: string): number {
  let count = 0
  for (const _ of text) count++
  return count
}
