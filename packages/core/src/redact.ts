/** Replaces a masked value. */
export const REDACTED = '[REDACTED]'

/** Options of {@link sanitizeArgs}. */
export interface SanitizeOptions {
  /**
   * How secret keys are recognised. `substring` (the default) masks every key that contains `key`, `password`,
   * `token`, `secret` or `auth` in any case, and therefore also `author` and `monkey`: it is safer to mask too
   * much. `word` matches whole words of a key (`apiKey`, `access_tokens`, `Authorization`), so those two pass.
   */
  readonly match?: 'substring' | 'word' | undefined
  /** Additional keys to mask: a string that the key contains, in any case, or a pattern. */
  readonly keys?: readonly (string | RegExp)[] | undefined
  /** Overrides the rules above for a key; `undefined` leaves the decision to them. `path` holds the keys above it. */
  readonly isSecret?: ((key: string, path: readonly string[]) => boolean | undefined) | undefined
  /** Longer strings are truncated, in UTF-16 units, with a note of how much is missing. Default 10,000. */
  readonly maxLength?: number | undefined
  /** Deeper values are omitted. Default 32, at most 64. */
  readonly maxDepth?: number | undefined
}

/**
 * Copies a tool's arguments for a dialog, a terminal or a log, with values under secret-looking keys replaced
 * by `[REDACTED]` at every depth. For display only: the tool runs with the original, which is neither changed
 * nor called. Getters and `toJSON` do not run, a class instance is shown as its own data, and cycles are cut.
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

/** Limits the recursion, whatever the option says. */
const MOST_DEPTH = 64

/** The data members of an object, without reading them: a getter could run code. */
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
  // A pattern with the flag g or y keeps state between matches.
  return new RegExp(rule.source, rule.flags.replace(/[gy]/g, '')).test(key)
}

/** The words of `accessTokens`, `ACCESS_TOKEN`, `access-token`, `HTTPAuth2`. */
const wordsOfKey = /\p{Lu}+(?!\p{Ll})|\p{Lu}?\p{Ll}+/gu
/** Includes compounds written as one word: `apikey`, `accesstoken`, `oauth`, `passwd`. */
const secretWord =
  /^(?:api|access|private|public|secret|ssh|signing|encryption|license)?keys?$|(?:passwords?|passphrases?|passwd|tokens?|secrets?)$|^(?:o|un)?auth$|^authori[sz]|^authentica/

function hasSecretWord(key: string): boolean {
  return (key.match(wordsOfKey) ?? []).some((word) => secretWord.test(word.toLowerCase()))
}
