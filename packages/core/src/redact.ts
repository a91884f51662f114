/** What stands in the place of a masked value. */
export const REDACTED = '[REDACTED]'

/** Options of {@link sanitizeArgs}. */
export interface SanitizeOptions {
  /**
   * How a key is recognised. `substring` (the default) masks every key that contains `key`, `password`, `token`, `secret` or `auth`
   * in any case, and so `author` and `monkey` as well: hiding too much is the safe mistake. `word` looks at the words of a key
   * (`apiKey`, `access_tokens`, `Authorization`), and lets those two pass.
   */
  readonly match?: 'substring' | 'word' | undefined
  /** Further keys to mask: a text that the key contains, in any case, or a pattern. */
  readonly keys?: readonly (string | RegExp)[] | undefined
  /** Has the last word about a key; nothing (`undefined`) leaves it to the rules above. `path` are the keys above it. */
  readonly isSecret?: ((key: string, path: readonly string[]) => boolean | undefined) | undefined
  /** Longer strings are cut, in UTF-16 units, and say how much is missing. Default 10,000. */
  readonly maxLength?: number | undefined
  /** What nests deeper is left out. Default 32, 64 at most. */
  readonly maxDepth?: number | undefined
}

/**
 * A copy of a tool's arguments for a dialog, a terminal, a log: values under keys that name secrets are `[REDACTED]`, at every depth.
 * For display only; what runs is always the original, which is neither changed nor called: getters and `toJSON` do not run, a class
 * instance is shown by its own data, and a cycle ends.
 *
 * @example tool({ name: 'deploy', redact: (input) => sanitizeArgs(input), ... })
 */
export function sanitizeArgs(value: unknown, options: SanitizeOptions = {}): unknown {
  const { match = 'substring', keys = [], isSecret, maxLength = 10_000, maxDepth = 32 } = options
  const matches = match === 'word' ? hasSecretWord : containsSecret
  const secret = (key: string, path: readonly string[]) =>
    isSecret?.(key, path) ?? (matches(key) || keys.some((rule) => matchesRule(rule, key)))
  const above = new Set<object>()
  const depth = Math.min(maxDepth, MOST_DEPTH)

  function copy(one: unknown, path: readonly string[]): unknown {
    if (typeof one === 'string') return shorten(one, maxLength)
    if (typeof one !== 'object' || one === null) return copyScalar(one)
    if (one instanceof Date) return dateText(one)
    if (above.has(one)) return '[Circular]'
    if (path.length >= depth) return '[Too deep]'
    above.add(one)
    const copied = Array.isArray(one)
      ? Array.from(one, (item, index) => copy(item, [...path, String(index)]))
      : Object.fromEntries(dataOf(one).map(([key, item]) => [key, copyMember(key, item, path)]))
    above.delete(one)
    return copied
  }

  function copyMember(key: string, item: PropertyDescriptor, path: readonly string[]): unknown {
    if (secret(key, path)) return REDACTED
    return 'value' in item ? copy(item.value, [...path, key]) : '[Getter]'
  }

  return copy(value, [])
}

/** Bounds the recursion, whatever is asked for. */
const MOST_DEPTH = 64

/** The members of an object that hold data, without reading any: to read one could run code. */
function dataOf(object: object): readonly (readonly [string, PropertyDescriptor])[] {
  return Object.entries(Object.getOwnPropertyDescriptors(object)).filter(([, member]) => member.enumerable)
}

function copyScalar(value: unknown): unknown {
  switch (typeof value) {
    case 'bigint':
      return `${value}n`
    case 'function':
      return '[Function]'
    case 'symbol':
      return '[Symbol]'
    default:
      return value
  }
}

function dateText(date: Date): string {
  const time = Date.prototype.getTime.call(date)
  return Number.isNaN(time) ? 'Invalid Date' : Date.prototype.toISOString.call(date)
}

function shorten(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most)}... (${text.length - most} more characters)`
}

const secretParts = /key|password|token|secret|auth/i

function containsSecret(key: string): boolean {
  return secretParts.test(key)
}

function matchesRule(rule: string | RegExp, key: string): boolean {
  if (typeof rule === 'string') return key.toLowerCase().includes(rule.toLowerCase())
  // a pattern with the flag g or y remembers where it stopped
  return new RegExp(rule.source, rule.flags.replace(/[gy]/g, '')).test(key)
}

/** The words of `accessTokens`, `ACCESS_TOKEN`, `access-token`, `HTTPAuth2`. */
const wordsOfKey = /\p{Lu}+(?!\p{Ll})|\p{Lu}?\p{Ll}+/gu
/** Also compounds that are written as one word: `apikey`, `accesstoken`, `oauth`, `passwd`. */
const secretWord =
  /^(?:api|access|private|public|secret|ssh|signing|encryption|license)?keys?$|(?:passwords?|passphrases?|passwd|tokens?|secrets?)$|^(?:o|un)?auth$|^authori[sz]|^authentica/

function hasSecretWord(key: string): boolean {
  return (key.match(wordsOfKey) ?? []).some((word) => secretWord.test(word.toLowerCase()))
}
