import { isRecord } from './value.js'

/**
 * What a call would do, as data that any page can show: plain JSON, never markup. A server sends at most 256 KiB of it. What a page can't
 * read as one of these kinds it shows as JSON ({@link readPreview}).
 */
export type Preview =
  | { readonly kind: 'text'; readonly text: string }
  /** A change of one text. `name`: what is changed, such as a path. */
  | { readonly kind: 'diff'; readonly name?: string; readonly before: string; readonly after: string }
  | { readonly kind: 'diff'; readonly name?: string; readonly hunks: readonly DiffHunk[] }
  /** `total` comes first on the page: what all items amount to, such as "12 files, 3.1 MB". Default: their number. */
  | { readonly kind: 'list'; readonly items: readonly string[]; readonly total?: string }
  | {
      readonly kind: 'table'
      readonly columns: readonly string[]
      readonly rows: readonly (readonly PreviewCell[])[]
      readonly total?: string
    }
  | { readonly kind: 'json'; readonly value: unknown }
  /** There is no preview. The user sees the reason, and the approval is bound to it like to any other preview. */
  | { readonly kind: 'none'; readonly reason: string }

/** A changed part of a text, as in a unified diff. Each line begins with a space (unchanged), `-` (removed) or `+` (added). */
export interface DiffHunk {
  /** Its first line in the text before, counted from 1. */
  readonly before: number
  /** Its first line in the text after. */
  readonly after: number
  readonly lines: readonly string[]
}

/** A cell of a table. */
export type PreviewCell = string | number | boolean | null

/**
 * Converts JSON to a preview: unchanged if it is well formed, and anything else, such as an unknown kind or a member that its kind doesn't
 * have and no page would show, as `{ kind: 'json' }`.
 */
export function readPreview(value: unknown): Preview {
  return isPreview(value) ? value : { kind: 'json', value }
}

function isPreview(value: unknown): value is Preview {
  if (!isRecord(value)) return false
  switch (value.kind) {
    case 'text':
      return hasOnly(value, 'text') && isText(value.text)
    case 'diff':
      if (!isAbsentOrText(value.name)) return false
      // Not both: only one would be shown.
      return hasOnly(value, 'name', 'hunks')
        ? isListOf(value.hunks, isHunk)
        : hasOnly(value, 'name', 'before', 'after') && isText(value.before) && isText(value.after)
    case 'list':
      return hasOnly(value, 'items', 'total') && isListOf(value.items, isText) && isAbsentOrText(value.total)
    case 'table': {
      const { columns, rows, total } = value
      if (!hasOnly(value, 'columns', 'rows', 'total')) return false
      if (!isListOf(columns, isText) || !isAbsentOrText(total)) return false
      return isListOf(rows, (row) => isListOf(row, isCell) && row.length === columns.length)
    }
    case 'json':
      return hasOnly(value, 'value') && 'value' in value
    case 'none':
      return hasOnly(value, 'reason') && isText(value.reason)
    default:
      return false
  }
}

function hasOnly(value: Readonly<Record<string, unknown>>, ...names: readonly string[]): boolean {
  return Object.keys(value).every((name) => name === 'kind' || names.includes(name))
}

function isHunk(value: unknown): boolean {
  if (!isRecord(value) || !hasOnly(value, 'before', 'after', 'lines')) return false
  if (!Number.isInteger(value.before) || !Number.isInteger(value.after)) return false
  return isListOf(value.lines, (line) => isText(line) && /^[ +-]/.test(line))
}

function isCell(value: unknown): boolean {
  return value === null || ['string', 'number', 'boolean'].includes(typeof value)
}

const isText = (value: unknown) => typeof value === 'string'
const isAbsentOrText = (value: unknown) => value === undefined || isText(value)

function isListOf(value: unknown, fits: (item: unknown) => boolean): value is readonly unknown[] {
  return Array.isArray(value) && value.every(fits)
}
