/** What the demo planner understands. Everything else is `unknown` and gets a reply with examples. */
export type Request =
  | { kind: 'help' }
  | { kind: 'greeting' }
  | { kind: 'thanks' }
  | { kind: 'list'; folder: string }
  | { kind: 'read'; path: string }
  | { kind: 'search'; text: string }
  | { kind: 'write'; path: string; content: string }
  /** Write a list of all files. */
  | { kind: 'write-index'; path: string }
  | { kind: 'move'; from: string; to: string }
  | { kind: 'delete'; paths: string[] }
  | { kind: 'tidy-logs' }
  | { kind: 'mail'; to: string; about: MailSubject }
  | { kind: 'restore' }
  | { kind: 'pay'; amount: number; currency: 'EUR' | 'USD'; to: string; reference: string }
  | { kind: 'measure'; folder: string }
  | { kind: 'duplicates'; folder: string }
  | { kind: 'append'; path: string; line: string }
  | { kind: 'clear'; folder: string }
  | { kind: 'unknown'; text: string }

export type MailSubject =
  | { kind: 'summary' }
  | { kind: 'file'; path: string }
  | { kind: 'text'; text: string }

/** One request of each kind, as a user would type it: for the help text and for the buttons of an empty page. */
export const exampleRequests: readonly string[] = [
  'Tidy up the logs, then mail the team a summary',
  'List the files in reports',
  'Read notes.txt',
  'Search for crane',
  'Write "Back at noon." to door.txt',
  'Write a list of all files to index.md',
  'Rename todo.md to tasks.md',
  'Delete reports/budget.csv',
  'Mail reports/quarter-3.md to mara@example.org',
  'Pay 80 EUR to Crane Ltd',
  'Measure the files in reports',
  'Find duplicate files',
  'Add "Call Mara" to todo.md',
  'Clear the folder logs',
  'Restore the sample files',
]

/** In characters. Longer texts are rejected, because some of the patterns below take quadratic time. */
const MAX_LENGTH = 2000

/** Parses a message as one or more requests joined by "then", in order. Never empty. */
export function parseRequests(text: string): Request[] {
  if (text.length > MAX_LENGTH) return [{ kind: 'unknown', text: `${text.slice(0, 100).trim()}...` }]
  return splitAtThen(text).map(parseRequest)
}

/** Splits at "then" outside of quotation marks. */
function splitAtThen(text: string): string[] {
  const parts: string[] = []
  let from = 0
  for (const found of text.matchAll(/"[^"]*"|“[^”]*”|([,;.]?\s+(?:and\s+)?then\s+)/gi)) {
    if (found[1] === undefined) continue
    parts.push(text.slice(from, found.index))
    from = found.index + found[0].length
  }
  return [...parts, text.slice(from)]
}

type Rule = readonly [pattern: RegExp, request: (groups: string[]) => Request | undefined]

// In this order: the first rule that matches wins.
const rules: readonly Rule[] = [
  [/^(?:help|what can you do|who are you|what are you)\b/i, () => ({ kind: 'help' })],
  [/^(?:hello|hi|hey|good (?:morning|day|evening))\b.{0,20}$/i, () => ({ kind: 'greeting' })],
  [/^(?:thanks|thank you|great|perfect)\b.{0,20}$/i, () => ({ kind: 'thanks' })],
  [
    /^(?:tidy|clean)(?: up)? (?:the |my |old )*(?:logs?|log files|logs folder)$/i,
    () => ({ kind: 'tidy-logs' }),
  ],
  [/^(?:restore|reset)\b.*\b(?:samples?|workspace|files|demo)$/i, () => ({ kind: 'restore' })],
  [
    /^(?:write|save) (?:a |an |the )?(?:list|index) of (?:all |the )*files (?:to|as|in|into) (.+)$/is,
    ([path = '']) => ({ kind: 'write-index', path: unquote(path) }),
  ],
  [
    /^(?:write|save|put) (.+) (?:to|as|into|in) (\S+|"[^"]+")$/is,
    ([content = '', path = '']) => ({ kind: 'write', path: unquote(path), content: unquote(content) }),
  ],
  [
    /^create (?:a file |the file )?(\S+|"[^"]+") (?:with|containing|saying) (.+)$/is,
    ([path = '', content = '']) => ({ kind: 'write', path: unquote(path), content: unquote(content) }),
  ],
  [
    /^(?:move|rename) (?:the file )?(\S+|"[^"]+") (?:to|as|into) (\S+|"[^"]+")$/i,
    ([from = '', to = '']) => ({ kind: 'move', from: unquote(from), to: unquote(to) }),
  ],
  [
    /^(?:delete|remove|erase) (?:the files? )?(.+)$/is,
    ([paths = '']) => ({ kind: 'delete', paths: pathList(paths) }),
  ],
  [
    /^pay (\d+(?:\.\d{1,2})?) (eur|usd) to ([^,"\r\n]{1,80}?)(?: for ([^,"\r\n]{1,80}))?$/i,
    ([amount, currency = '', to = '', reference = '']) => ({
      ...{ kind: 'pay', amount: Number(amount), to, reference: reference || 'without a number' },
      currency: currency.toLowerCase() === 'eur' ? 'EUR' : 'USD',
    }),
  ],
  [/^(?:e-?mail|mail|send|write to) (.+)$/is, ([rest = '']) => parseMail(rest)],
  [
    /^(?:measure|count)(?: all| the)*(?: files| lines)?(?: (?:in|of)(?: the)?(?: folder)? (.+?))?$/i,
    ([folder = '']) => ({ kind: 'measure', folder: folderName(folder) }),
  ],
  [
    /^(?:find|look for|show|list)(?: me)?(?: all| the)* (?:duplicates?|identical|equal)(?: files)?(?: (?:in|of)(?: the)?(?: folder)? (.+?))?$/i,
    ([folder = '']) => ({ kind: 'duplicates', folder: folderName(folder) }),
  ],
  [
    /^(?:add|append) (.+) to (\S+|"[^"]+")$/is,
    ([line = '', path = '']) => ({ kind: 'append', path: unquote(path), line: unquote(line) }),
  ],
  [
    /^(?:clear|empty)(?: the)?(?: folder)? (\S+|"[^"]+")(?: folder)?$/i,
    ([folder = '']) => ({ kind: 'clear', folder: folderName(folder) }),
  ],
  [
    /^(?:search|look|grep)(?: all files| the files)? (?:for )?(.+)$/is,
    ([text = '']) => ({ kind: 'search', text: unquote(text) }),
  ],
  [/^find (.+)$/is, ([text = '']) => ({ kind: 'search', text: unquote(text) })],
  [
    /^(?:list|show|what(?:'s| is| are)?)(?: me)?(?: in)?(?: all)?(?: the| my)?(?: files| workspace| everything| there)?(?: (?:in|of)(?: the)?(?: folder)? (.+?)| here)?$/i,
    ([folder = '']) => ({ kind: 'list', folder: folderName(folder) }),
  ],
  [
    /^(?:read|show|open|print|cat)(?: me)? (?:the file )?(\S+\.\w+|"[^"]+")$/i,
    ([path = '']) => ({ kind: 'read', path: unquote(path) }),
  ],
  [
    /^(?:list|ls|show(?: me)?|what(?:'s| is) in) (?:the )?(?:folder )?(\S+)(?: folder)?$/i,
    ([folder = '']) => ({ kind: 'list', folder: folderName(folder) }),
  ],
  [/^what files are (?:there|here)$/i, () => ({ kind: 'list', folder: '' })],
  [/^(?:ls|dir)$/i, () => ({ kind: 'list', folder: '' })],
  [/^read (\S+)$/i, ([path = '']) => ({ kind: 'read', path })],
]

function parseRequest(text: string): Request {
  const plain = withoutPoliteness(text)
  for (const [pattern, request] of rules) {
    const found = pattern.exec(plain)
    const understood = found && request(found.slice(1).map((group) => (group ?? '').trim()))
    if (understood) return understood
  }
  return { kind: 'unknown', text: text.trim() }
}

function withoutPoliteness(text: string): string {
  return text
    .trim()
    .replace(
      /^(?:please|now|so|ok|okay|and|can you|could you|would you|will you|i want you to|i'd like you to|let's)[, ]+/i,
      '',
    )
    .replace(/^please[, ]+/i, '')
    .replace(/[, ]+please\b[.!?]*$/i, '')
    .replace(/[.!?\s]+$/, '')
}

/** "the team a summary", "ann@example.org", "notes.txt to ann@example.org", "a mail to ann saying ...". */
function parseMail(rest: string): Request | undefined {
  const saying =
    /^(?:an? )?(?:e-?mail|mail|message)?(?: ?to)? ?(\S+@\S+|the team|team|me|everyone) (?:saying|with|that says) (.+)$/is.exec(
      rest,
    )
  if (saying) return mailTo(saying[1] ?? '', unquote(saying[2] ?? ''), true)
  const toLast = /^(.+) to (the team|team|me|everyone|\S+)$/is.exec(rest)
  if (toLast) return mailTo(toLast[2] ?? '', toLast[1] ?? '')
  const toFirst = /^(the team|team|me|everyone|\S+@\S+|[a-z]+)(?: (.+))?$/is.exec(rest)
  if (toFirst) return mailTo(toFirst[1] ?? '', toFirst[2] ?? '')
  return undefined
}

function mailTo(person: string, what: string, literal = false): Request {
  return {
    kind: 'mail',
    to: addressOf(person),
    about: literal ? { kind: 'text', text: what } : subjectOf(what),
  }
}

function subjectOf(what: string): MailSubject {
  const bare = what.trim()
  const quoted = unquote(bare)
  if (quoted !== bare) return { kind: 'text', text: quoted }
  if (/^(?:the file )?\S+\.\w+$/i.test(bare)) return { kind: 'file', path: bare.replace(/^the file /i, '') }
  const isSummary = bare === '' || /\b(?:summary|report|overview|e?mail|it|this|that)\b/i.test(bare)
  return isSummary ? { kind: 'summary' } : { kind: 'text', text: bare }
}

function addressOf(person: string): string {
  const name = person.toLowerCase().replace(/^the /, '')
  if (name.includes('@')) return name
  return `${name === 'everyone' ? 'team' : name}@example.org`
}

function pathList(text: string): string[] {
  const paths = text
    .split(/\s*,\s*(?:and\s+)?|\s+and\s+/)
    .map((path) => unquote(path.replace(/^(?:delete |remove )?(?:the file )?/i, '')))
  return [...new Set(paths.filter((path) => path !== ''))]
}

const folderName = (name: string): string =>
  /^(?:the )?(?:workspace|everything|files|all|all files|here|there)?$/i.test(name)
    ? ''
    : unquote(name).replace(/\/$/, '')

function unquote(text: string): string {
  const quoted = /^(?:"(.*)"|“(.*)”|'(.*)'|`(.*)`)$/s.exec(text.trim())
  return quoted ? (quoted[1] ?? quoted[2] ?? quoted[3] ?? quoted[4] ?? '') : text.trim()
}
