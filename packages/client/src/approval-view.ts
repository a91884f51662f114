import {
  type ApprovalErrorCode,
  type ApprovalOption,
  type Delivery,
  type DisplayLimits,
  type DisplayText,
  displayJson,
  displayText,
  isExactJson,
  isRecord,
  type OfferedMandate,
  readSubagent,
  type ToolCallApproval,
  type ToolCallPart,
} from '@countersign/core'
import type { ApprovalResponse } from './command.js'
import { expiryOf } from './expiry.js'
import type { PreviewView, previewView } from './preview-view.js'
import { createRoom, type Room } from './room.js'

/**
 * The status of an approval request. `open`: it waits for the user. `responded`: the answer is in transit or waits for other requests
 * of the turn (see `delivery`). `settled`: it has taken effect. `unanswerable`: it can no longer be answered (see `problem`).
 */
export type ApprovalStatus = 'open' | 'responded' | 'settled' | 'unanswerable'

/** One way to answer. */
export interface ApprovalChoice {
  readonly option: ApprovalOption
  readonly label: string
  /** The request is not open, or it would be approved while part of it is not shown. */
  readonly disabled: boolean
  /** To pass to `addToolApprovalResponse`; a page may add a `reason` or the edited `input`. */
  readonly response: ApprovalResponse
}

/** A standing approval or denial that the user may choose instead. */
export interface MandateChoice {
  readonly mandate: OfferedMandate
  readonly label: DisplayText
  /** As for a choice that approves or denies. */
  readonly disabled: boolean
  readonly response: ApprovalResponse
}

/** One argument, ready to show. */
export interface ArgumentField {
  /** `undefined` if the arguments are not an object. */
  readonly key: DisplayText | undefined
  readonly value: DisplayText
  /** A string is shown as it is, any other value as JSON. */
  readonly isText: boolean
}

/** The arguments, ready to show. */
export interface ApprovalArguments {
  /** All of them as indented JSON; empty with the option `fields`. */
  readonly text: DisplayText
  /** One by one, with the option `fields`: as many as the limits allow. */
  readonly fields: readonly ArgumentField[]
  /** JSON Pointers (RFC 6901) to values shown differently from what the tool will get; `''` is the whole. */
  readonly masked: readonly string[]
  /** The server masks some of them: the option `exact` shows them unmasked. */
  readonly revealable: boolean
}

/**
 * What the user may edit, or has edited. `offered`: all arguments or only these top-level keys, starting from
 * `input`. `edited`: the answer carries these arguments instead.
 */
export type ApprovalEdit =
  | { readonly status: 'none' }
  | {
      readonly status: 'offered'
      readonly keys: 'all' | readonly string[]
      readonly input: unknown
      /** As for a choice that approves: while set, nothing can be edited, and no edit can be approved. */
      readonly disabled: boolean
    }
  | { readonly status: 'edited'; readonly input: unknown }

/** An approval request as plain data, for any markup. All texts are safe to show as text, never as markup. */
export interface ApprovalView {
  /** The approval's id, for the answer. */
  readonly id: string
  readonly toolCallId: string
  readonly status: ApprovalStatus
  /** It cannot be answered (now): disable everything that answers. */
  readonly disabled: boolean
  /** The subagents that ask, the outermost first: each works for the one before it. Empty for the agent itself. */
  readonly askedBy: readonly DisplayText[]
  /** The tool's name, unless another title was given. */
  readonly title: DisplayText
  /** The server's message; set it apart from the page's own text. */
  readonly message: DisplayText | undefined
  /** What the call would do: with the option `preview`, if the request has one. */
  readonly preview: PreviewView | undefined
  /** Absent if the call has no arguments. */
  readonly arguments: ApprovalArguments | undefined
  /** How many characters of all this are not shown. While there are any, nothing can be approved, edited or not. */
  readonly hidden: number
  /** Something in all this, shown or not, is hidden or looks like something else: warn the user. */
  readonly suspicious: boolean
  /** The choices offered, in this order: deny, once, session. */
  readonly choices: readonly ApprovalChoice[]
  readonly mandates: readonly MandateChoice[]
  readonly edit: ApprovalEdit
  /** Milliseconds since the epoch, if the request expires. */
  readonly expiresAt: number | undefined
  /** The answer, if there is one. */
  readonly approved: boolean | undefined
  readonly delivery: Delivery | undefined
  /** Why the request cannot be answered, or the answer was refused. */
  readonly problem: ApprovalErrorCode | undefined
}

/**
 * `maxLength`, `maxLines` and `columns` limit how much of title, message and arguments is shown together, and how much of the preview;
 * the message, each field and each line of the preview get at most half. While something is not shown, nothing can be approved. Offer to show everything (no limits). Default: no limits.
 */
export interface ApprovalViewOptions extends DisplayLimits {
  /** Default: the tool's name. */
  readonly title?: string | undefined
  /** Default: `Cancel`, `Approve Once`, `Always (This Session)`. */
  readonly labels?: { readonly [Option in ApprovalOption]?: string | undefined } | undefined
  /** Give the arguments one by one, as `arguments.fields`. Default false: as one JSON text, `arguments.text`. */
  readonly fields?: boolean | undefined
  /** Show the arguments exactly as the tool will get them, even if the server masks some. Default false. */
  readonly exact?: boolean | undefined
  /** Pass `previewView` if a tool has previews: otherwise nobody sees them. It is an option so that other pages do not load it. */
  readonly preview?: typeof previewView | undefined
}

const labels: { readonly [Option in ApprovalOption]: string } = {
  deny: 'Cancel',
  once: 'Approve Once',
  session: 'Always (This Session)',
}

const order = ['deny', 'once', 'session'] as const satisfies readonly ApprovalOption[]

/**
 * What a page shows of an approval request, and whether it can be approved yet; `undefined` for a call
 * without one. Computed from the part alone.
 *
 * @example
 * const view = approvalView(part, expanded ? {} : { maxLength: 2000, maxLines: 32 })
 * view.choices.map(({ label, disabled, response }) => button(label, disabled, () => client.addToolApprovalResponse(response)))
 */
export function approvalView(
  part: ToolCallPart,
  options: ApprovalViewOptions = {},
): ApprovalView | undefined {
  const { approval } = part
  if (!approval) return undefined
  const isExact = isExactJson(part.arguments)
  const { id, message, approved, delivery, problem } = approval
  const status = statusOf(part, approval)
  const room = createRoom(options)
  const inOneLine = (text: string) =>
    room.take(0.25, (limits) => displayText(text, { ...limits, multiline: false }))
  // In the order in which they are shown: earlier ones use up the limits first.
  const title = inOneLine(options.title ?? part.name)
  const askedBy = askersOf(part).map(inOneLine)
  const said = message ? room.take(0.5, (limits) => displayText(message, limits)) : undefined
  const shown = showArguments(part, isExact ? undefined : part.arguments, approval, options, room)
  const labelled = (approval.mandates ?? []).map((one) => [one, inOneLine(one.label)] as const)
  const closed = status !== 'open'
  const preview =
    approval.preview === undefined
      ? undefined
      : options.preview?.(approval.preview, { ...options, previous: approval.previous })
  const { hidden, suspicious } = room.found()
  const notShown = hidden + (preview?.hidden ?? 0)
  const held = closed || notShown > 0
  const expiresAt = expiryOf(approval)
  return {
    id,
    toolCallId: part.id,
    status,
    disabled: closed,
    askedBy,
    title,
    message: said,
    preview,
    arguments: shown,
    hidden: notShown,
    suspicious: suspicious || !isExact || preview?.suspicious === true,
    choices: choicesOf(approval, options, closed, held),
    mandates: labelled.map(([mandate, label]) => {
      const approved = mandate.decide !== 'deny'
      const response = { id, approved, mandate: mandate.id }
      return { mandate, label, disabled: approved ? held : closed, response }
    }),
    edit: isExact || approval.input !== undefined ? editOf(part, approval, held) : { status: 'none' },
    expiresAt: Number.isFinite(expiresAt) ? expiresAt : undefined,
    approved,
    delivery,
    problem,
  }
}

/** The arguments of any call one by one, as in an approval request, with the same `hidden` and `suspicious`. */
export function argumentFields(
  input: unknown,
  limits: DisplayLimits = {},
): {
  readonly fields: readonly ArgumentField[]
  readonly hidden: number
  readonly suspicious: boolean
} {
  const room = createRoom(limits)
  const fields = showFields(input, room)
  return { fields, ...room.found() }
}

/** A subagent that was never announced has no name, only its id. */
function askersOf({ metadata }: ToolCallPart): readonly string[] {
  const asker = readSubagent(metadata)
  if (!asker) return []
  return [...(asker.parents ?? []), asker].map(({ id, name }) => name ?? id)
}

function statusOf({ state }: ToolCallPart, { approved, problem }: ToolCallApproval): ApprovalStatus {
  switch (state) {
    case 'approval-requested':
      return problem === undefined && approved === undefined ? 'open' : 'unanswerable'
    case 'approval-responded':
      return 'responded'
    case 'executing':
    case 'complete':
    case 'error':
    case 'denied':
    case 'cancelled':
      return 'settled'
    case 'awaiting-input':
    case 'input-streaming':
    case 'input-complete':
      return 'unanswerable'
    default:
      return state satisfies never
  }
}

function choicesOf(
  { id, options: offered }: ToolCallApproval,
  options: ApprovalViewOptions,
  closed: boolean,
  held: boolean,
): readonly ApprovalChoice[] {
  return order
    .filter((option) => offered.includes(option))
    .map((option) => ({
      option,
      label: options.labels?.[option] ?? labels[option],
      disabled: option === 'deny' ? closed : held,
      response: option === 'deny' ? { id, approved: false } : { id, approved: true, scope: option },
    }))
}

function editOf({ input }: ToolCallPart, approval: ToolCallApproval, disabled: boolean): ApprovalEdit {
  if (approval.input !== undefined) return { status: 'edited', input: approval.input }
  const { allowEdits, approved } = approval
  if (!allowEdits || approved !== undefined) return { status: 'none' }
  if (allowEdits === true) return { status: 'offered', keys: 'all', input, disabled }
  if (allowEdits.length === 0) return { status: 'none' }
  return { status: 'offered', keys: allowEdits, input, disabled }
}

/** `raw`: their text, if it has values that this page cannot show otherwise. */
function showArguments(
  { input }: ToolCallPart,
  raw: string | undefined,
  { display }: ToolCallApproval,
  { exact = false, fields = false }: ApprovalViewOptions,
  room: Room,
): ApprovalArguments | undefined {
  const differing = display === undefined ? [] : findDifferences(display, input)
  if (raw !== undefined && (exact || display === undefined)) {
    const text = room.take(1, (limits) => displayText(raw, limits))
    const field = { key: undefined, value: text, isText: false }
    return { text, fields: fields ? [field] : [], masked: [], revealable: display !== undefined }
  }
  const shown = exact || display === undefined ? input : display
  // If the server's `display` is empty although there are arguments, show that they are hidden.
  if (isAbsent(shown) && isAbsent(input)) return undefined
  return {
    text: fields ? displayText('') : room.take(1, (limits) => displayJson(shown, limits)),
    fields: fields ? showFields(shown, room) : [],
    masked: exact ? [] : differing,
    revealable: differing.length > 0,
  }
}

/** As many as fit, each in at most half of the limits, so that a long one does not crowd out the others. */
function showFields(input: unknown, room: Room): readonly ArgumentField[] {
  if (input === undefined) return []
  if (!isRecord(input)) return [{ key: undefined, ...showValue(input, room, input === '') }]
  const fields: ArgumentField[] = []
  const entries = Object.entries(input)
  for (const [at, [key, value]] of entries.entries()) {
    if (room.isFull()) {
      const rest = Object.fromEntries(entries.slice(at))
      room.take(1, (limits) => displayJson(rest, limits))
      break
    }
    const label = room.take(0.5, (limits) => displayText(key, { ...limits, multiline: false }))
    fields.push({ key: label, ...showValue(value, room) })
  }
  return fields
}

function showValue(value: unknown, room: Room, asJson = false): Omit<ArgumentField, 'key'> {
  const isText = typeof value === 'string' && !asJson
  const show = (limits: DisplayLimits) => (isText ? displayText(value, limits) : displayJson(value, limits))
  return { value: room.take(0.5, show, 'beside'), isText }
}

/** Whether there are none: `null`, an empty text or an empty list is one. */
function isAbsent(value: unknown): boolean {
  return value === undefined || (isRecord(value) && Object.keys(value).length === 0)
}

/** Where two JSON values differ, as JSON Pointers in the order of `shown`. Not recursive, so deep values cannot overflow the stack. */
function findDifferences(shown: unknown, exact: unknown): readonly string[] {
  const found: string[] = []
  const todo = [{ pointer: '', shown, exact }]
  for (let next = todo.pop(); next; next = todo.pop()) {
    const { pointer, shown: a, exact: b } = next
    const [inA, inB] = [membersOf(a), membersOf(b)]
    if (inA && inB && Array.isArray(a) === Array.isArray(b)) {
      const keys = [...new Set([...inA.keys(), ...inB.keys()])]
      for (const key of keys.reverse()) {
        const step = key.replaceAll('~', '~0').replaceAll('/', '~1')
        todo.push({ pointer: `${pointer}/${step}`, shown: inA.get(key), exact: inB.get(key) })
      }
    } else if (a !== b) found.push(pointer)
  }
  return found
}

function membersOf(value: unknown): ReadonlyMap<string, unknown> | undefined {
  return Array.isArray(value) || isRecord(value) ? new Map(Object.entries(value)) : undefined
}
