import {
  type ApprovalErrorCode,
  type ApprovalOption,
  type Delivery,
  type DisplayText,
  displayJson,
  displayText,
  isRecord,
  readSubagent,
  type ToolCallApproval,
  type ToolCallPart,
} from '@countersign/core'
import type { ApprovalResponse } from './acts.js'
import { expiryOf } from './expiry.js'

/**
 * How far a request has come. `open`: it waits for the person. `responded`: the person has answered, and the answer is on its way or waits
 * for its siblings (`delivery` tells). `settled`: it has had its effect. `unanswerable`: it can be answered no more (`problem` says why).
 */
export type ApprovalStatus = 'open' | 'responded' | 'settled' | 'unanswerable'

/** One way to answer. */
export interface ApprovalChoice {
  readonly option: ApprovalOption
  readonly label: string
  /** The request is not open; or it would be approved while some of its arguments are not shown. */
  readonly disabled: boolean
  /** For `addToolApprovalResponse`, to which a page may add a `reason` or the edited `input`. */
  readonly response: ApprovalResponse
}

/** The arguments as they are to be shown. */
export interface ApprovalArguments {
  /** Indented JSON, safe to show; its `hidden` says how many characters `maxLength` left out. */
  readonly text: DisplayText
  /** JSON Pointers (RFC 6901) to the values that are shown otherwise than the tool will get them; `''` is the whole. */
  readonly masked: readonly string[]
  /** The server shows them otherwise than they are: the option `exact` shows them as they are. */
  readonly revealable: boolean
}

/**
 * What the person may change, or did. `offered`: all of the arguments or only these top-level keys, beginning with `input`. `edited`:
 * the answer carries these arguments instead.
 */
export type ApprovalEdit =
  | { readonly status: 'none' }
  | { readonly status: 'offered'; readonly keys: 'all' | readonly string[]; readonly input: unknown }
  | { readonly status: 'edited'; readonly input: unknown }

/** A request for approval as plain data, for whatever markup. All texts are safe to show as texts, never as markup. */
export interface ApprovalView {
  /** The approval's id, for the answer. */
  readonly id: string
  readonly toolCallId: string
  readonly status: ApprovalStatus
  /** Nothing can be answered (now): what answers is to be disabled. */
  readonly disabled: boolean
  /** The subagents that ask, the outermost first: each works for the one before it. Empty where the agent itself asks. */
  readonly askedBy: readonly DisplayText[]
  /** The tool's name, unless another title was given. */
  readonly title: DisplayText
  /** The server's own words, to be set apart from the page's. */
  readonly message: DisplayText | undefined
  /** Absent where the call has no arguments. */
  readonly arguments: ApprovalArguments | undefined
  /** What is offered, in this order: deny, once, session. */
  readonly choices: readonly ApprovalChoice[]
  readonly edit: ApprovalEdit
  /** Milliseconds since the epoch, where the request expires. */
  readonly expiresAt: number | undefined
  /** What was answered, if anything. */
  readonly approved: boolean | undefined
  readonly delivery: Delivery | undefined
  /** Why the request cannot be answered, or the answer was refused. */
  readonly problem: ApprovalErrorCode | undefined
}

export interface ApprovalViewOptions {
  /** Default: the tool's name. */
  readonly title?: string | undefined
  /** Default: `Cancel`, `Approve Once`, `Always (This Session)`. */
  readonly labels?: { readonly [Option in ApprovalOption]?: string | undefined } | undefined
  /** How many characters of the arguments are shown. While some are not, nothing can be approved. Default: all. */
  readonly maxLength?: number | undefined
  /** Show the arguments as the tool will get them, also where the server masks some. Default false. */
  readonly exact?: boolean | undefined
}

const labels: { readonly [Option in ApprovalOption]: string } = {
  deny: 'Cancel',
  once: 'Approve Once',
  session: 'Always (This Session)',
}

const order = ['deny', 'once', 'session'] as const satisfies readonly ApprovalOption[]

/**
 * What a page shows of a request for approval; `undefined` for a call that nobody was asked about. Computed from the part alone.
 *
 * @example
 * const view = approvalView(part, { maxLength: expanded ? undefined : 2000 })
 * view.choices.map(({ label, disabled, response }) => button(label, disabled, () => client.addToolApprovalResponse(response)))
 */
export function approvalView(
  part: ToolCallPart,
  options: ApprovalViewOptions = {},
): ApprovalView | undefined {
  const { approval } = part
  if (!approval) return undefined
  const { id, message, approved, delivery, problem } = approval
  const status = statusOf(part, approval)
  const shown = showArguments(part, approval, options)
  const expiresAt = expiryOf(approval)
  return {
    id,
    toolCallId: part.id,
    status,
    disabled: status !== 'open',
    askedBy: askersOf(part),
    title: displayText(options.title ?? part.name, { multiline: false }),
    message: message ? displayText(message) : undefined,
    arguments: shown,
    choices: choicesOf(approval, options, status === 'open', (shown?.text.hidden ?? 0) > 0),
    edit: editOf(part, approval),
    expiresAt: Number.isFinite(expiresAt) ? expiresAt : undefined,
    approved,
    delivery,
    problem,
  }
}

/** One that was never announced has no other name than its id. */
function askersOf({ metadata }: ToolCallPart): readonly DisplayText[] {
  const asker = readSubagent(metadata)
  if (!asker) return []
  return [...(asker.parents ?? []), asker].map(({ id, name }) =>
    displayText(name ?? id, { multiline: false }),
  )
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
  open: boolean,
  partlyHidden: boolean,
): readonly ApprovalChoice[] {
  return order
    .filter((option) => offered.includes(option))
    .map((option) => ({
      option,
      label: options.labels?.[option] ?? labels[option],
      disabled: !open || (partlyHidden && option !== 'deny'),
      response: option === 'deny' ? { id, approved: false } : { id, approved: true, scope: option },
    }))
}

function editOf({ input }: ToolCallPart, approval: ToolCallApproval): ApprovalEdit {
  if (approval.input !== undefined) return { status: 'edited', input: approval.input }
  const { allowEdits, approved } = approval
  if (!allowEdits || approved !== undefined) return { status: 'none' }
  if (allowEdits === true) return { status: 'offered', keys: 'all', input }
  return allowEdits.length > 0 ? { status: 'offered', keys: allowEdits, input } : { status: 'none' }
}

function showArguments(
  { input }: ToolCallPart,
  { display }: ToolCallApproval,
  { exact = false, maxLength }: ApprovalViewOptions,
): ApprovalArguments | undefined {
  const differing = display === undefined ? [] : findDifferences(display, input)
  const shown = exact || display === undefined ? input : display
  // A server that shows nothing of arguments that are there hides them: then it is to be seen that they are.
  if (isEmpty(shown) && isEmpty(input)) return undefined
  return {
    text: displayJson(shown, { maxLength }),
    masked: exact ? [] : differing,
    revealable: differing.length > 0,
  }
}

function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === '') return true
  return typeof value === 'object' && Object.keys(value).length === 0
}

/** Where two JSON values differ, as JSON Pointers in the order of `shown`. Without recursion, so that no depth overflows the stack. */
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
