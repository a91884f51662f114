import type { EntryKind } from '../form.js'

/** The names of the kinds of entries, in the order of the filters. */
export const kindNames: Readonly<Record<EntryKind, { readonly one: string; readonly many: string }>> = {
  request: { one: 'request', many: 'Requests' },
  event: { one: 'event', many: 'Events' },
  state: { one: 'state', many: 'States' },
  action: { one: 'action', many: 'Actions' },
  note: { one: 'step', many: 'Steps' },
  closed: { one: 'end', many: 'Ends' },
}

/** The time since the first entry: `+0.012 s`, `+3:04.1`. */
export function sinceStart(at: number | undefined, start: number | undefined): string {
  if (at === undefined || start === undefined) return ''
  const seconds = Math.max(0, at - start) / 1000
  if (seconds < 60) return `+${seconds.toFixed(3)} s`
  return `+${Math.floor(seconds / 60)}:${(seconds % 60).toFixed(1).padStart(4, '0')}`
}

export function countOf(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString('en')} ${count === 1 ? one : many}`
}
