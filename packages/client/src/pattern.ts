/** Maps positions in the text to the positions that a part of the pattern can lead to. */
type Part = (from: ReadonlySet<number>) => ReadonlySet<number>

const token =
  /\\(?:u\{[^}]*\}|u[dD][89abAB]..\\u....|u....|x..|c.|[pP]\{[^}]*\}|.)|\[(?:\\.|[^\\\]])*\]|\(\?(?:<[^=!>][^>]*>|<[=!]|[=!:])?|[*+?]\??|\{[\d,]*\}\??|./gsu

/** Backreferences, lookbehinds and inline flags, which cannot be matched with positions alone. */
const unknown = /^(?:\\[1-9k]|\(\?(?:<[=!])?$)/

/** Deeper nesting is unreasonable for a form. */
const deepest = 64

/** The cost of compiling a character class, and of each Unicode property in it, relative to one step from one position. */
const costOfClass = 40
const costOfProperty = 1000

/**
 * Whether a text matches a pattern, like `new RegExp(pattern, 'u').test(text)`, but without backtracking: all reachable
 * positions are followed at once, so each is visited once per part. `spend` is called with the number of steps and throws if
 * there are too many. Returns `undefined` for a pattern that cannot be matched this way; an invalid pattern matches nothing.
 */
export function matches(pattern: string, text: string, spend: (steps: number) => void): boolean | undefined {
  try {
    new RegExp(pattern, 'u')
  } catch {
    return false
  }
  const tokens = pattern.match(token) ?? []
  if (tokens.some((one) => unknown.test(one))) return undefined
  spend(text.length)
  const chars = [...text]
  let at = 0
  let depth = 0

  function choice(): Part {
    const choices = [sequence()]
    while (tokens[at] === '|') {
      at++
      choices.push(sequence())
    }
    return choices.length === 1 && choices[0]
      ? choices[0]
      : (from) => new Set(choices.flatMap((part) => [...part(from)]))
  }

  function sequence(): Part {
    const parts: Part[] = []
    while (at < tokens.length && tokens[at] !== '|' && tokens[at] !== ')') parts.push(repeated())
    return (from) => {
      spend(1 + from.size)
      return parts.reduce((positions, part) => part(positions), from)
    }
  }

  function repeated(): Part {
    const part = single()
    const times = /^(?:([*+?])|\{(\d+)(,?)(\d*))/.exec(tokens[at] ?? '')
    if (times === null) return part
    at++
    const [, sign, count, comma, bound] = times
    const least = sign === undefined ? Number(count) : sign === '+' ? 1 : 0
    const most =
      sign === '?' ? 1 : sign || (comma && !bound) ? Number.POSITIVE_INFINITY : Number(bound || count)
    const once: Part = (from) => {
      spend(1 + from.size)
      return part(from)
    }
    return (from) => {
      let fresh = from
      for (let time = 0; time < least; time++) fresh = once(fresh)
      const all = new Set(fresh)
      for (let time = least; time < most && fresh.size > 0; time++) {
        fresh = new Set([...once(fresh)].filter((position) => !all.has(position)))
        for (const position of fresh) all.add(position)
      }
      return all
    }
  }

  function single(): Part {
    const one = tokens[at++] ?? ''
    if (one.startsWith('(')) return group(one)
    if (one === '^') return where((position) => position === 0)
    if (one === '$') return where((position) => position === chars.length)
    if (one === '\\b') return where(isEdge)
    if (one === '\\B') return where((position) => !isEdge(position))
    const fits = character(one)
    return (from) => {
      spend(1 + from.size)
      const to = new Set<number>()
      for (const position of from) if (fits(chars[position] ?? '')) to.add(position + 1)
      return to
    }
  }

  function group(opening: string): Part {
    if (++depth > deepest) spend(Number.POSITIVE_INFINITY)
    const inner = choice()
    depth--
    at++
    if (opening !== '(?=' && opening !== '(?!') return inner
    return where((position) => inner(new Set([position])).size > 0 === (opening === '(?='))
  }

  function where(holds: (position: number) => boolean): Part {
    return (from) => {
      spend(1 + from.size)
      return new Set([...from].filter(holds))
    }
  }

  function isEdge(position: number): boolean {
    return /^\w/.test(chars[position - 1] ?? '') !== /^\w/.test(chars[position] ?? '')
  }

  function character(one: string): (char: string) => boolean {
    if (one !== '.' && !/^[\\[]/.test(one)) return (char) => char === one
    spend(costOfClass + one.length + costOfProperty * (one.split(/\\p/i).length - 1))
    const like = new RegExp(`^${one}$`, 'u')
    return (char) => like.test(char)
  }

  return choice()(new Set(Array.from({ length: chars.length + 1 }, (_, position) => position))).size > 0
}
