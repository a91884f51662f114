/** A path or URL as a base of `under`: what comes before the first segment, and the segments. */
export interface Base {
  readonly isUrl: boolean
  /** `https://example.org/` of a URL, `/` of an absolute path, empty for a relative one. */
  readonly root: string
  readonly segments: readonly string[]
}

/** Control and format characters, lone surrogates, and all that programs may leave out: fillers, variation selectors, tags. */
const UNSEEN = /[\p{C}\p{Default_Ignorable_Code_Point}]/u

const URL_START = /^[a-z][a-z\d+.-]*:\/\//i

/** Longer texts are never under anything, and may be under everything, in characters. */
const MAX_LENGTH = 8192

/**
 * More combining marks in a row than UAX #15 lets through as Stream-Safe Text: normalizing them takes the square of their number. Two
 * letters (halfwidth Katakana) become such marks. The lookbehind begins once per row, not at each of its marks.
 */
const MANY_MARKS = /(?<![\p{M}\uff9e\uff9f])[\p{M}\uff9e\uff9f]{31}/u

/** Reads a base; undefined if it could be read in two ways itself, or is a URL that is not written in its normal form. */
export function readBase(text: string): Base | undefined {
  if (text.length > MAX_LENGTH || UNSEEN.test(text) || MANY_MARKS.test(text)) return undefined
  const isUrl = URL_START.test(text)
  const root = isUrl ? rootOf(text) : text.startsWith('/') ? '/' : ''
  if (root === undefined || /[?#]/.test(isUrl ? text : '')) return undefined
  const segments = segmentsOf(text, { isUrl, root, segments: [] })
  return segments && { isUrl, root, segments }
}

/** Scheme, host and port, in normal form: another spelling would only look like a base that something can be under. */
function rootOf(text: string): string | undefined {
  const parsed = URL.canParse(text) ? new URL(text) : undefined
  const root = parsed && `${parsed.protocol}//${parsed.host}/`
  return root !== undefined && `${text}/`.startsWith(root) ? root : undefined
}

/**
 * Whether `value` is strictly below a base. Only the text is read, and whatever another program could read differently is not below
 * anything: `..` (a symbolic link may lead elsewhere), escapes in paths, look-alike and invisible characters, another spelling of a host.
 */
export function isUnder(value: unknown, base: Base): boolean {
  if (typeof value !== 'string') return false
  const segments = segmentsOf(value, base)
  if (segments === undefined || segments.length <= base.segments.length) return false
  // Relative to no folder in particular: `C:` and `~` are roots of their own.
  if (base.root === '' && base.segments.length === 0 && /^[^/]*:|^~/.test(value)) return false
  return base.segments.every((segment, index) => segment === segments[index])
}

/**
 * Whether `value` may be a base or below it: everything that {@link isUnder} finds, and whatever could be read in two ways. Surely elsewhere
 * is only a text that everybody reads alike, of the same kind, with another host or other segments. Upper and lower case count as the same.
 */
export function mayBeUnder(value: unknown, base: Base): boolean {
  if (typeof value !== 'string' || value.length > MAX_LENGTH || URL_START.test(value) !== base.isUrl)
    return true
  const segments = base.isUrl ? urlSegments(value, base) : pathSegments(value, base)
  if (segments === 'elsewhere') return false
  // Some servers leave out the parameters of each name in a URL: `/admin;a=b/users`.
  const nameOf = (segment = '') => plainText(base.isUrl ? segment.replace(/;.*/su, '') : segment)
  const mayBe = (name: string | undefined, other: string | undefined) =>
    name === undefined || other === undefined || name === other
  return (
    segments === undefined ||
    base.segments.every((segment, index) => mayBe(nameOf(segment), nameOf(segments[index])))
  )
}

/** A text without differences that some programs ignore. Undefined if it would take too long to tell. */
export function plainText(text: string): string | undefined {
  return new Spelling(text).plain(Number.POSITIVE_INFINITY)
}

/** A text without the differences that some programs ignore. It is prepared once, and only as far as a comparison needs. */
export class Spelling {
  #text: string | undefined
  #steps = STEPS

  constructor(text: string) {
    this.#text = withoutMany(text.replace(ALL_UNSEEN, '').trim())
  }

  /**
   * The plain text, or undefined if it would take too long to tell. What is surely longer than `longest` may be less than plain: NFKC makes
   * some texts 18 times longer, and the model decides how long they are.
   */
  plain(longest: number): string | undefined {
    const most = MOST_SHORTENED * (longest + 1)
    while (this.#text !== undefined && this.#text.length <= most) {
      const [step, ...others] = this.#steps
      if (step === undefined) break
      this.#text = step(this.#text)
      this.#steps = others
    }
    return this.#text
  }
}

/** Makes the forms of one character the same, then upper and lower case. */
const STEPS: readonly ((text: string) => string | undefined)[] = [
  normalized,
  (text) => normalized(ignoringCase(text.replace(ALL_UNSEEN, '').trim())),
]

/**
 * The upper case of ß is SS, but that of ẞ (U+1E9E) is ẞ: the lower case comes first, too. That of İ keeps its dot as a mark, as Lithuanian
 * does below accents.
 */
function ignoringCase(text: string): string {
  return text
    .toLowerCase()
    .toUpperCase()
    .toLowerCase()
    .replace(/(?<=[ijį])\u0307/g, '')
}

/**
 * How many times shorter these steps can make a text: a character decomposes to no less than half its length, at most four
 * make one (a dot that goes is among these). One space before a mark may go as well.
 */
const MOST_SHORTENED = 8

function normalized(text: string): string | undefined {
  return withoutMany(text)?.normalize('NFKC')
}

/** A text that can be normalized. */
function withoutMany(text: string): string | undefined {
  return MANY_MARKS.test(text) ? undefined : text
}

const ALL_UNSEEN = new RegExp(UNSEEN, 'gu')

/** The segments of a URL; undefined if they could be read in two ways. */
function urlSegments(value: string, base: Base): readonly string[] | undefined | 'elsewhere' {
  const [whole = ''] = /^[^?#]*/.exec(value) ?? []
  const [origin = ''] = /^[^/]*\/\/[^/]*/.exec(whole) ?? []
  const host = hostOf(origin)
  if (host === undefined || UNSEEN.test(value) || value.includes('\\')) return undefined
  // Another scheme or port of a host often leads to the same place.
  if (host !== hostOf(base.root)) return 'elsewhere'
  return segmentsOf(whole, { isUrl: true, root: `${origin}/`, segments: [] })
}

/** The host that all programs find; undefined if some may find another. */
function hostOf(origin: string): string | undefined {
  const isPlain = /^[^/]*\/\/(?:[\w.-]*|\[[\da-f:.]+\])(?::\d+)?\/?$/i.test(origin)
  if (!isPlain || !URL.canParse(origin)) return undefined
  return new URL(origin).hostname.replace(/\.$/, '').toLowerCase()
}

/** The segments of a path; undefined if they could be read in two ways, or depend on a working directory, a drive or a home. */
function pathSegments(value: string, base: Base): readonly string[] | undefined {
  const segments = segmentsOf(value, base)
  // Short names and streams are other names of the same.
  if (segments === undefined || value.startsWith('/') !== (base.root === '/')) return undefined
  const [first = '', ...others] = segments
  if (others.some((segment) => /:|~\d/.test(segment)) || /~\d|^[^:]*:./.test(first)) return undefined
  const isSpecial = (segment = '') => /:|^~/.test(segment)
  const isSame = plainText(first) === plainText(base.segments[0] ?? '')
  if (base.root === '' && !isSame && (isSpecial(first) || isSpecial(base.segments[0]))) return undefined
  return segments
}

/** The segments after the root of `base`; undefined for another root, and for anything that could be read in two ways. */
function segmentsOf(text: string, { isUrl, root }: Base): readonly string[] | undefined {
  // A base without its last slash has the same root.
  const whole = isUrl && `${text}/` === root ? root : text
  if (whole.length > MAX_LENGTH || !whole.startsWith(root) || UNSEEN.test(whole) || whole.includes('\\'))
    return undefined
  const path = isUrl ? pathOf(whole.slice(root.length)) : whole.slice(root.length)
  // A second slash at the start makes another root.
  if (path === undefined || path.startsWith('/') || (!isUrl && /%[\da-f]{2}/i.test(path))) return undefined
  if (normalized(path) !== path) return undefined
  const all = path.split('/')
  // In a path, `.` and `//` change nothing. In a URL, servers differ.
  const segments = isUrl ? withoutLast(all) : all.filter((segment) => segment !== '' && segment !== '.')
  return segments.every(isPlain) ? segments : undefined
}

/** The path of a URL with its escapes resolved; undefined if it has escapes that servers may resolve a second time, or not at all. */
function pathOf(rest: string): string | undefined {
  const [path = ''] = rest.split(/[?#]/)
  // Only spaces and characters beyond ASCII need escapes.
  if (/%(?!20|[89a-f][\da-f])/i.test(path)) return undefined
  try {
    const resolved = decodeURIComponent(path)
    return UNSEEN.test(resolved) ? undefined : resolved
  } catch {
    return undefined
  }
}

function withoutLast(segments: readonly string[]): readonly string[] {
  return segments.at(-1) === '' ? segments.slice(0, -1) : segments
}

/**
 * Some systems ignore dots and spaces at the end of a name, and some servers what follows two dots or a semicolon: without it and the spaces,
 * a name must remain.
 */
function isPlain(segment: string): boolean {
  return !/^[\s.]*(?:;|$)/.test(segment) && !segment.startsWith('..') && !/[. ]$/.test(segment)
}
