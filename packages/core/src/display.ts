import { printJson } from './print-json.js'

/** A piece of text as it may be shown. The pieces in order, put together, are the text shown. */
export type DisplaySegment =
  /** Text with nothing hidden in it. Its letters run in one direction: left to right, or right to left. */
  | { type: 'text'; text: string }
  /** One character that has no shape of its own or changes its surroundings, written out: `⟨U+202E⟩`. */
  | { type: 'escaped'; text: string; codePoint: number }
  /** A long run of spaces, tabs or line ends, counted: `⟨80 line ends⟩`. `source` is the run. */
  | { type: 'blank'; text: string; source: string }
  /** A word whose letters come from scripts that look alike, such as a Cyrillic letter in a Latin word. */
  | { type: 'mixed-script'; text: string; scripts: readonly string[] }

/** Text made safe to show to the person who decides. */
export interface DisplayText {
  /**
   * For a page: each piece as the text of an element of its own (`<bdi>`), never as markup, in an element with `dir="ltr"`. So
   * right-to-left letters keep their place between the others.
   */
  segments: readonly DisplaySegment[]
  /** For a terminal: the pieces as one string; those with right-to-left letters are between U+2068 and U+2069. */
  text: string
  /** How many characters (code points) at the end are not shown. */
  hidden: number
  /** How many lines are shown, counted as `columns` says. 0 for the empty text. */
  lines: number
  /** Whether anything in the whole text, shown or not, was escaped, counted or mixes scripts. Line ends and tabs do not count. */
  suspicious: boolean
}

/** How much of a text is shown. The cut is never inside a grapheme. */
export interface DisplayLimits {
  /** How many characters (code points) are shown at most, what is written out included. Default: all. */
  maxLength?: number | undefined
  /** How many lines are shown at most, blank ones included. Default: all. */
  maxLines?: number | undefined
  /**
   * How wide a line is. A longer one counts as several lines; a tab counts 4 columns and what is beyond ASCII 2. Default: a line ends
   * only where the text ends it.
   */
  columns?: number | undefined
}

/** Options of {@link displayText} and {@link displayJson}. */
export interface DisplayOptions extends DisplayLimits {
  /** Keep line feeds and tabs; otherwise they are written out like other controls. Default true. */
  multiline?: boolean | undefined
}

/**
 * Makes visible what a text could hide: controls, bidirectional controls, characters without width, tags, variation
 * selectors, line and paragraph separators, blanks that are no ordinary space, unassigned and private characters,
 * halves of surrogate pairs, more than 4 accents on one letter. Runs of more than 32 columns of spaces and tabs, and of more
 * than 8 line ends, are counted. Emoji sequences stay whole. Words that mix scripts are marked: Latin, Cyrillic, Greek and
 * others whose letters look alike. Right-to-left letters become pieces of their own, so that they reorder nothing else.
 * Time is linear in the length of the text.
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
 * {@link displayText} of a JSON value, printed with an indentation of two spaces (which stops growing at 16 levels), or in
 * one line with `multiline: false`. Keys and strings are quoted as in JSON, where a line end is `\n` and a tab `\t`; other
 * controls are shown, and counted as suspicious, as displayText does. `undefined` is the empty text.
 */
export function displayJson(value: unknown, options: DisplayOptions = {}): DisplayText {
  return displayText(value === undefined ? '' : printJson(value, options.multiline ?? true), options)
}

/** What may hide something. Any other text is shown as it is. */
const notPlain = /[^ -~\n\t]|[ \t]{9}|\n[ \t\n]{8}/

/**
 * Finds emoji sequences (to keep whole what would be hidden characters elsewhere), long runs of blanks, hidden characters, words, and
 * other characters with their accents: an accent that none of these takes in is hidden. The repetitions are bounded, because a repetition
 * without bounds overflows the stack of the matcher on very long words. U+FFFC and U+1D159 are drawn as nothing.
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
  /** Everything before is in `segments`. */
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
    // inside a run of blanks that was counted
    if (start < done) continue
    const end = start + match[0].length
    if (groups.word !== undefined) {
      // A piece of a word that is longer than one match.
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

/** The whole run that begins at `start`: to the last of its line ends, or of spaces and tabs alone. */
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

/** Letters that run from right to left would reorder what stands beside them. */
const rightToLeft = /[\u0590-\u08FF\uFB1D-\uFDFF\uFE70-\uFEFC\u{10800}-\u{10FFF}\u{1E800}-\u{1EFFF}]+/gu
const leftToRight = /[^\P{L}\u0590-\u08FF\uFB1D-\uFDFF\uFE70-\uFEFC\u{10800}-\u{10FFF}\u{1E800}-\u{1EFFF}]/u

/**
 * A text in pieces of one direction. A line without left-to-right letters is a piece; in others the right-to-left words of a phrase are
 * one, and signs and numbers, which could change places with them, are not in it.
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

/** Where to end so that the limits hold and no grapheme is divided, and how many lines there are before that. */
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

/** What a piece stands for; `undefined` where it stands for itself. */
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

/** Where `Intl.Segmenter` is missing, a grapheme may be cut, but never a surrogate pair. */
function graphemeStart(text: string, at: number): number {
  return 'Segmenter' in Intl ? (new Intl.Segmenter().segment(text).containing(at)?.index ?? at) : at
}

function countCodePoints(text: string): number {
  let count = 0
  for (const _ of text) count++
  return count
}
