import type { Call, FinishedCall, Turn } from './conversation.js'
import { type Action, call, callAll, nextAction, type Plan, say } from './replay.js'
import {
  age,
  changesSomething,
  contentOf,
  duplicatesOf,
  type Files,
  filesOf,
  hitsOf,
  report,
  size,
} from './report.js'
import { exampleRequests, type MailSubject, parseRequests, type Request } from './requests.js'

/** The age from which a log counts as old. */
const OLD_AFTER_DAYS = 14

/** The planner's next action, derived from the conversation alone. The last turn is the current one. */
export function planNext(turns: readonly Turn[]): Action {
  const turn = turns.at(-1)
  return turn ? nextAction(wholeTurn(turn, turns.slice(0, -1)), turn) : { text: helpText, calls: [] }
}

function* wholeTurn(turn: Turn, earlier: readonly Turn[]): Plan {
  const last = earlier.at(-1)
  const withdrawn = (last?.steps.at(-1) ?? []).filter((made) => made.outcome.kind === 'cancelled')
  if (!last?.isAnswered && withdrawn.length > 0) yield* say(sentences(withdrawn))
  const before = earlier.flatMap((past) => past.steps.flat())
  for (const request of parseRequests(turn.request)) {
    yield* planFor(request, () => [...before, ...turn.steps.flat()])
  }
}

/** `history` returns every call of the conversation so far. */
function planFor(request: Request, history: () => FinishedCall[]): Plan {
  switch (request.kind) {
    case 'help':
      return say(helpText)
    case 'greeting':
      return say('Hello. Ask for something to be done with the files, or type `help`.')
    case 'thanks':
      return say('You are welcome.')
    case 'list':
      return listing(request.folder)
    case 'read':
      return reading(request.path)
    case 'search':
      return searching(request.text)
    case 'write':
      return gated(`I have prepared ${request.path}.`, {
        name: 'write_file',
        input: { path: request.path, content: request.content },
      })
    case 'write-index':
      return writingIndex(request.path)
    case 'move':
      return gated('Renaming needs your approval.', {
        name: 'move_file',
        input: { from: request.from, to: request.to },
      })
    case 'delete':
      return deleting(request.paths)
    case 'tidy-logs':
      return tidyingLogs()
    case 'mail':
      return mailing(request.to, request.about, history)
    case 'restore':
      return gated('I can put the sample files back.', { name: 'restore_samples', input: {} })
    case 'pay': {
      const { kind, ...payment } = request
      return gated('I have prepared the payment.', { name: 'pay_invoice', input: payment })
    }
    case 'measure':
      return measuring(request.folder)
    case 'duplicates':
      return findingDuplicates(request.folder)
    case 'append':
      return gated(`I have a line for ${request.path}.`, {
        name: 'mcp__files__append_line',
        input: { path: request.path, line: request.line },
      })
    case 'clear':
      return gated('Clearing a folder needs your approval.', {
        name: 'mcp__files__clear_folder',
        input: { folder: request.folder },
      })
    case 'unknown':
      return say(notUnderstood(request.text))
    default:
      return request satisfies never
  }
}

function* gated(announcement: string, wanted: Call): Plan {
  yield* say(announcement)
  yield* say(report(yield* call(wanted.name, wanted.input)))
}

function* listing(folder: string): Plan {
  const listed = yield* call('list_files', { folder })
  if (listed.outcome.kind !== 'done') return yield* say(report(listed))
  const files = filesOf(listed.outcome)
  if (files.length === 0) return yield* say(`There is no file in ${folder || 'the workspace'}.`)
  yield* say(`${files.length} files in ${folder || 'the workspace'}:\n\n${fileLines(files)}`)
}

function* reading(path: string): Plan {
  const read = yield* call('read_file', { path })
  if (read.outcome.kind !== 'done') return yield* say(report(read))
  yield* say(`\`${path}\` says:\n\n\`\`\`\n${contentOf(read.outcome).trimEnd()}\n\`\`\``)
}

function* searching(text: string): Plan {
  const searched = yield* call('search_files', { text })
  if (searched.outcome.kind !== 'done') return yield* say(report(searched))
  const hits = hitsOf(searched.outcome)
  if (hits.length === 0) return yield* say(`No file contains “${text}”.`)
  const lines = hits.map((hit) => `- \`${hit.path}\` line ${hit.line}: ${hit.text}`)
  yield* say(
    `${hits.length === 1 ? 'One line contains' : `${hits.length} lines contain`} “${text}”:\n\n${lines.join('\n')}`,
  )
}

function* measuring(folder: string): Plan {
  yield* say(report(yield* call('mcp__files__measure_files', { folder })))
}

function* findingDuplicates(folder: string): Plan {
  const found = yield* call('mcp__files__find_duplicates', { folder })
  if (found.outcome.kind !== 'done') return yield* say(report(found))
  const groups = duplicatesOf(found.outcome)
  if (groups.length === 0) return yield* say('No two files are alike.')
  yield* say(
    `These are alike:\n\n${groups.map((paths) => `- ${paths.map((path) => `\`${path}\``).join(', ')}`).join('\n')}`,
  )
}

function* writingIndex(path: string): Plan {
  const listed = yield* call('list_files', { folder: '' })
  if (listed.outcome.kind !== 'done') return yield* say(report(listed))
  const rows = filesOf(listed.outcome).map(
    (file) => `- ${file.path} (${size(file.bytes)}, ${age(file.daysOld)})`,
  )
  yield* gated('Here is the list. You can still edit it.', {
    name: 'write_file',
    input: { path, content: `# Files\n\n${rows.join('\n')}\n` },
  })
}

function* deleting(patterns: readonly string[]): Plan {
  const paths = patterns.some((pattern) => pattern.includes('*')) ? yield* matching(patterns) : [...patterns]
  if (paths.length === 0) return yield* say(`No file matches ${patterns.join(', ')}.`)
  yield* say(
    paths.length === 1
      ? 'Deleting needs your approval.'
      : `Deleting these ${paths.length} files needs your approval, one by one.`,
  )
  yield* say(sentences(yield* callAll(paths.map((path) => ({ name: 'delete_file', input: { path } })))))
}

function* matching(patterns: readonly string[]) {
  const files = filesOf((yield* call('list_files', { folder: '' })).outcome)
  return files.map((file) => file.path).filter((path) => patterns.some((pattern) => fits(path, pattern)))
}

/** Whether a path matches a pattern; `*` is any text within one name. A regular expression with many stars would be slow. */
function fits(path: string, pattern: string): boolean {
  const names = path.split('/')
  const wanted = pattern.split('/')
  return names.length === wanted.length && names.every((name, index) => nameFits(name, wanted[index] ?? ''))
}

function nameFits(name: string, pattern: string): boolean {
  const [first = '', ...others] = pattern.split('*')
  const last = others.pop()
  if (last === undefined) return name === first
  if (!name.startsWith(first)) return false
  let at = first.length
  for (const piece of others) {
    const found = name.indexOf(piece, at)
    if (found < 0) return false
    at = found + piece.length
  }
  return name.length - last.length >= at && name.endsWith(last)
}

function* tidyingLogs(): Plan {
  yield* say('Let me look at the logs first.')
  const listed = yield* call('list_files', { folder: 'logs' })
  if (listed.outcome.kind !== 'done') return yield* say(report(listed))
  const logs = filesOf(listed.outcome).filter((file) => file.path.endsWith('.log'))
  const old = logs.filter((file) => file.daysOld >= OLD_AFTER_DAYS)
  if (old.length === 0) return yield* say('Nothing to tidy up: no log is older than two weeks.')
  yield* say(
    `Of ${logs.length} logs, ${old.length} are older than two weeks:\n\n${fileLines(old)}\n\nI ask for your approval before I delete each one.`,
  )
  const deleted = yield* callAll(old.map(({ path }) => ({ name: 'delete_file', input: { path } })))
  yield* say(sentences(deleted))
}

function* mailing(to: string, about: MailSubject, history: () => FinishedCall[]): Plan {
  const letter = yield* letterAbout(about, history)
  if (typeof letter === 'string') return yield* say(letter)
  yield* say('The mail is ready. Read it, edit it if you like, then approve or deny it.')
  yield* say(report(yield* call('send_email', { to, ...letter })))
}

/** Subject and body, or a sentence on why there is none. */
function* letterAbout(about: MailSubject, history: () => FinishedCall[]) {
  switch (about.kind) {
    case 'text':
      return { subject: firstWords(about.text), body: about.text }
    case 'file': {
      const read = yield* call('read_file', { path: about.path })
      if (read.outcome.kind !== 'done') return report(read)
      return { subject: about.path, body: contentOf(read.outcome) }
    }
    case 'summary': {
      const changes = history().filter((made) => changesSomething(made) && made.name !== 'send_email')
      if (changes.length > 0)
        return {
          subject: 'What was done with the files',
          body: letter(changes.map((made) => `- ${report(made)}`)),
        }
      const files = filesOf((yield* call('list_files', { folder: '' })).outcome)
      return {
        subject: 'The files of the workspace',
        body: letter(files.map((file) => `- ${file.path}, ${size(file.bytes)}`)),
      }
    }
    default:
      return about satisfies never
  }
}

const letter = (lines: readonly string[]): string =>
  `Hello,\n\n${lines.join('\n')}\n\nRegards,\nthe demo planner`

const firstWords = (text: string): string =>
  text
    .split(/\s+/)
    .slice(0, 6)
    .join(' ')
    .replace(/[.,;:]+$/, '')

const sentences = (calls: readonly FinishedCall[]): string =>
  calls.length === 1 ? calls.map(report).join('') : calls.map((made) => `- ${report(made)}`).join('\n')

const fileLines = (files: Files): string =>
  files.map((file) => `- \`${file.path}\`, ${size(file.bytes)}, ${age(file.daysOld)}`).join('\n')

const examples = exampleRequests.map((request) => `- ${request}`).join('\n')

const helpText = `I am the demo planner of Countersign: a small program that knows a few requests, not a language model. I ask for your approval before I change a file or send a mail. Try one of these:\n\n${examples}\n\nJoin requests with “then” to have them done one after the other.`

const notUnderstood = (text: string): string =>
  `${text === '' ? 'That was empty.' : `I do not know how to do “${text}”.`} I am a small planner with a fixed list of requests, not a language model. These I know:\n\n${examples}`
