import { z } from 'zod'
import type { Call, FinishedCall, Outcome } from './conversation.js'

const files = z.array(z.object({ path: z.string(), bytes: z.number(), daysOld: z.number() }))
const hits = z.array(z.object({ path: z.string(), line: z.number(), text: z.string() }))

export type Files = z.infer<typeof files>
export type Hits = z.infer<typeof hits>

/** The files of a `list_files` result; empty if it failed. */
export const filesOf = (outcome: Outcome): Files => parsed(z.object({ files }), outcome)?.files ?? []
/** The lines of a `search_files` result; empty if it failed. */
export const hitsOf = (outcome: Outcome): Hits => parsed(z.object({ hits }), outcome)?.hits ?? []
/** Paths of files with the same content, in groups. */
export const duplicatesOf = (outcome: Outcome): string[][] =>
  parsed(z.object({ duplicates: z.array(z.array(z.string())) }), outcome)?.duplicates ?? []
export const contentOf = (outcome: Outcome): string =>
  parsed(z.object({ content: z.string() }), outcome)?.content ?? ''

function parsed<Shape extends z.ZodType>(shape: Shape, outcome: Outcome): z.infer<Shape> | undefined {
  return outcome.kind === 'done' ? shape.safeParse(outcome.output).data : undefined
}

/** One sentence about what a call actually did or did not do, for the user and for a mail to others. */
export function report(call: FinishedCall): string {
  const words = wordsFor(call)
  const { outcome } = call
  switch (outcome.kind) {
    case 'done':
      return words.done(outcome.output)
    case 'denied':
      return `${words.kept}, as you decided${outcome.reason ? `: “${outcome.reason}”` : ''}.`
    case 'cancelled':
      return `${words.kept}: ${whyCancelled(outcome.code)}.`
    case 'failed':
      return `Could not ${words.verb}: ${sentence(outcome.message)}`
    default:
      return outcome satisfies never
  }
}

function whyCancelled(code: string | undefined): string {
  if (code === undefined) return 'the request was withdrawn'
  if (code === 'approval-expired') return 'the request expired'
  return `the answer could not be accepted (${code})`
}

interface Words {
  /** "Could not ..." */
  verb: string
  /** What to report if the call did not run. */
  kept: string
  done(output: unknown): string
}

function wordsFor({ name, input }: Call): Words {
  const path = text(input, 'path')
  switch (name) {
    case 'delete_file':
      return {
        verb: `delete ${path}`,
        kept: `Kept ${path}`,
        done: (output) => `Deleted ${path} (${size(number(output, 'bytes'))}).`,
      }
    case 'write_file':
      return {
        verb: `write ${path}`,
        kept: `Did not write ${path}`,
        done: (output) => {
          const written = text(output, 'path') || path
          const how = flag(output, 'replaced') ? 'Replaced' : 'Wrote'
          return `${how} ${written} (${size(number(output, 'bytes'))}).`
        },
      }
    case 'move_file': {
      const [from, to] = [text(input, 'from'), text(input, 'to')]
      return {
        verb: `move ${from}`,
        kept: `Left ${from} where it was`,
        done: () => `Moved ${from} to ${to}.`,
      }
    }
    case 'send_email': {
      const to = text(input, 'to')
      return {
        verb: `send the mail to ${to}`,
        kept: `Did not send the mail to ${to}`,
        done: (output) =>
          `Sent “${text(output, 'subject')}” to ${text(output, 'to') || to}; it is in ${text(output, 'file')}.`,
      }
    }
    case 'pay_invoice': {
      const payment = `${number(input, 'amount')} ${text(input, 'currency')} to ${text(input, 'to')}`
      return { verb: `pay ${payment}`, kept: `Did not pay ${payment}`, done: () => `Paid ${payment}.` }
    }
    case 'restore_samples':
      return { verb: 'restore the sample files', kept: 'Left the files as they are', done: restored }
    case 'mcp__files__append_line':
      return {
        verb: `add to ${path}`,
        kept: `Left ${path} as it was`,
        done: () => `Added a line to ${path}.`,
      }
    case 'mcp__files__clear_folder': {
      const folder = text(input, 'folder')
      return {
        verb: `clear ${folder}`,
        kept: `Kept the files in ${folder}`,
        done: (output) => `Deleted ${number(output, 'deleted')} files in ${folder}.`,
      }
    }
    case 'mcp__files__measure_files': {
      const folder = text(input, 'folder') || 'the workspace'
      return { ...reading(`measure ${folder}`), done: (output) => measured(folder, output) }
    }
    case 'mcp__files__find_duplicates':
      return reading('look for duplicates')
    case 'list_files':
      return reading(`list ${text(input, 'folder') || 'the workspace'}`)
    case 'search_files':
      return reading('search the files')
    default:
      return reading(path === '' ? `run ${name}` : `read ${path}`)
  }
}

const reading = (verb: string): Words => ({ verb, kept: `Did not ${verb}`, done: () => `Could ${verb}.` })

function measured(folder: string, output: unknown): string {
  const [files, lines, bytes] = ['files', 'lines', 'bytes'].map((key) => number(output, key))
  return `${folder}: ${files} files, ${lines} lines, ${size(bytes ?? 0)}.`
}

function restored(output: unknown): string {
  const paths = z.object({ restored: z.array(z.string()) }).safeParse(output).data?.restored ?? []
  return paths.length === 0 ? 'All sample files were as they should be.' : `Put back ${paths.join(', ')}.`
}

const READING: ReadonlySet<string> = new Set([
  'list_files',
  'read_file',
  'search_files',
  'mcp__files__measure_files',
  'mcp__files__find_duplicates',
])

/** Whether a call changes something and so belongs in a summary. */
export function changesSomething(call: Call): boolean {
  return !READING.has(call.name)
}

/** A size in bytes: `812 bytes`, `1.4 KB`. */
export function size(bytes: number): string {
  return bytes < 1000 ? `${bytes} bytes` : `${(bytes / 1000).toFixed(1)} KB`
}

/** An age in whole days: `today`, `1 day old`. */
export function age(days: number): string {
  return days === 0 ? 'today' : `${days} ${days === 1 ? 'day' : 'days'} old`
}

const sentence = (message: string): string => (/[.!?]$/.test(message) ? message : `${message}.`)

function member(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, key)
    ? Reflect.get(value, key)
    : undefined
}

function text(value: unknown, key: string): string {
  const found = member(value, key)
  return typeof found === 'string' ? found : ''
}

function number(value: unknown, key: string): number {
  const found = member(value, key)
  return typeof found === 'number' ? found : 0
}

const flag = (value: unknown, key: string): boolean => member(value, key) === true
