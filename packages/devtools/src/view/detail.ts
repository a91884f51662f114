import {
  type ChatSnapshot,
  displayJson,
  displayText,
  isTerminal,
  type MessagePart,
  type ToolCallPart,
  type UIMessage,
} from '@countersign/core'
import type { StateThen } from '../fold.js'
import type { Flags } from '../form.js'
import { mask, maskEntry } from '../mask.js'
import type { Row } from '../rows.js'
import { h } from './dom.js'
import { countOf, kindNames, sinceStart } from './words.js'

/** Longer values are truncated. */
const MOST_CHARACTERS = 4000
/** Of earlier messages only the number is shown. */
const MOST_MESSAGES = 30

export interface Chosen {
  readonly row: Row
  readonly state: StateThen
  readonly revealed: boolean
  readonly start: number | undefined
}

/** Shows an entry and the state of the chat after it. */
export function detailOf({ row, state, revealed, start }: Chosen): readonly HTMLElement[] {
  const { entry, run, count, number } = row
  const snapshot = revealed ? state.snapshot : (mask(state.snapshot) as ChatSnapshot)
  const about = [
    run > 0 && `run ${run}`,
    sinceStart(entry.at, start),
    count > 1 && countOf(count, 'piece'),
  ].filter(Boolean)
  return [
    h(
      'header',
      { class: 'detail-head' },
      h('h3', { 'data-kind': entry.kind }, `${number + 1} · ${kindNames[entry.kind].one}`),
      h('span', { class: 'muted' }, about.join(' · ')),
    ),
    section('The chat then', standingOf(snapshot, state.flags), ...messagesOf(snapshot.messages)),
    section('Entry', json(revealed ? entry : maskEntry(entry))),
  ]
}

function section(title: string, ...children: readonly HTMLElement[]): HTMLElement {
  return h('section', {}, h('h4', {}, title), ...children)
}

function standingOf({ status, pendingApprovals, queue, error }: ChatSnapshot, flags: Flags): HTMLElement {
  return h(
    'p',
    { class: 'standing' },
    h('span', { class: 'chip', 'data-status': status }, status),
    ...flagChips(flags),
    pendingApprovals.length > 0 && h('span', { class: 'chip' }, `${pendingApprovals.length} to answer`),
    queue.length > 0 && h('span', { class: 'chip' }, `${queue.length} queued`),
    error && h('span', { class: 'chip', 'data-status': 'error' }, error.code),
  )
}

/** The two flags of the continuation, highlighted if they are set. */
export function flagChips(flags: Flags): readonly HTMLElement[] {
  return (['continuationPending', 'continuationSkipped'] as const).map((name) =>
    h(
      'span',
      { class: 'chip flag', 'data-lit': String(flags[name]) },
      `${name}: ${flags[name] ? 'yes' : 'no'}`,
    ),
  )
}

function messagesOf(messages: readonly UIMessage[]): readonly HTMLElement[] {
  const earlier = messages.length - MOST_MESSAGES
  if (messages.length === 0) return [h('p', { class: 'muted' }, 'No messages.')]
  return [
    ...(earlier > 0 ? [h('p', { class: 'muted' }, countOf(earlier, 'earlier message'))] : []),
    ...messages.slice(-MOST_MESSAGES).map(messageOf),
  ]
}

function messageOf({ id, role, parts }: UIMessage): HTMLElement {
  return h(
    'article',
    { class: 'message', 'data-role': role },
    h('p', { class: 'message-head' }, h('b', {}, role), h('span', { class: 'muted' }, safe(id))),
    ...parts.map(partOf),
  )
}

function partOf(part: MessagePart): HTMLElement {
  switch (part.type) {
    case 'text':
      return h('p', { class: 'said' }, safe(part.text))
    case 'reasoning':
      return h('p', { class: 'said muted' }, safe(part.text))
    case 'tool-call':
      return callOf(part)
    case 'file':
      return h('p', { class: 'muted' }, safe(`${part.media}, ${part.source.mimeType ?? part.source.type}`))
    case 'tool-result':
      // Its content is shown in its call.
      return h('p', { class: 'muted mono' }, safe(`result of ${part.toolCallId}`))
    case 'source':
    case 'data':
      return json(part)
    default:
      return part satisfies never
  }
}

function callOf(part: ToolCallPart): HTMLElement {
  const { id, name, state, input, output, error, approval } = part
  const { approved } = approval ?? {}
  return h(
    'details',
    { class: 'call', open: approved === undefined && !isTerminal(state) },
    h(
      'summary',
      {},
      h('b', {}, safe(name)),
      ' ',
      h('span', { class: 'chip', 'data-call': state }, state),
      approval && h('span', { class: 'approval' }, safe(answerOf(approval))),
    ),
    h('p', { class: 'muted mono' }, safe(id)),
    input !== undefined && json(input),
    output !== undefined && json(output),
    error && h('p', { class: 'failure' }, safe(error.message)),
  )
}

function answerOf({
  id,
  approved,
  scope,
  reason,
  delivery,
  problem,
}: NonNullable<ToolCallPart['approval']>): string {
  const said = approved === undefined ? 'not answered' : approved ? 'yes' : 'no'
  const more = [scope, reason && `“${reason}”`, delivery, problem].filter(Boolean)
  return `approval ${id}: ${[said, ...more].join(', ')}`
}

function json(value: unknown): HTMLElement {
  const { text, hidden } = displayJson(value, { maxLength: MOST_CHARACTERS })
  const pre = h('pre', { tabindex: 0, 'aria-label': 'JSON' }, text)
  if (hidden > 0) pre.append(`\n… ${countOf(hidden, 'more character')}`)
  return pre
}

function safe(text: string): string {
  const shown = displayText(text, { maxLength: MOST_CHARACTERS })
  return shown.hidden > 0 ? `${shown.text}… (${countOf(shown.hidden, 'more character')})` : shown.text
}
