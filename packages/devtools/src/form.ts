import type { RunCursor } from '@countersign/client'
import {
  type AGUIEvent,
  CountersignError,
  type ErrorCode,
  isRecord,
  isThreadRecord,
  type LocalEvent,
  type RunAgentInput,
  type RunEnd,
  type ThreadRecord,
} from '@countersign/core'

/** The two flags of the continuation, as in `client.inspect()`. */
export interface Flags {
  readonly continuationPending: boolean
  readonly continuationSkipped: boolean
}

/** An error as plain JSON. */
export interface RecordedError {
  readonly code: ErrorCode
  readonly message: string
  readonly data?: Readonly<Record<string, unknown>>
}

/** How a stream ended, as plain JSON. */
export type RecordedEnd =
  | Exclude<RunEnd, { readonly type: 'failed' }>
  | { readonly type: 'failed'; readonly error: RecordedError; readonly resumable?: boolean }

/** A local event, as plain JSON. */
export type RecordedStep =
  | Exclude<LocalEvent, { readonly type: 'run-closed' | 'failed' }>
  | { readonly type: 'run-closed'; readonly end: RecordedEnd }
  | { readonly type: 'failed'; readonly error: RecordedError }

/** A user action, by the name of the client's method. */
export interface RecordedAction {
  readonly name: string
  readonly value?: unknown
}

/**
 * One line of the timeline. `run` counts requests from 1, and is 0 before the first. Optional members are
 * present in a recording of a client, and absent if only the server's side was recorded.
 */
export type TimelineEntry = (
  | {
      readonly kind: 'request'
      readonly run: number
      readonly input: RunAgentInput
      /** The run that is rejoined instead of starting a new one. */
      readonly rejoin?: RunCursor
    }
  | {
      readonly kind: 'event'
      readonly run: number
      readonly event: AGUIEvent | { readonly type: string; readonly [key: string]: unknown }
    }
  | {
      readonly kind: 'closed'
      readonly run: number
      readonly how: string
      readonly step?: Extract<RecordedStep, { readonly type: 'run-closed' }>
    }
  | { readonly kind: 'note'; readonly run: number; readonly text: string; readonly step?: RecordedStep }
  | { readonly kind: 'action'; readonly text: string; readonly action?: RecordedAction }
  | { readonly kind: 'state'; readonly text: string; readonly flags?: Flags }
) & {
  /** Milliseconds since the epoch. */
  readonly at?: number
}

export type EntryKind = TimelineEntry['kind']

/** The recording of a client, as plain JSON. `@countersign/testing` replays it. */
export interface Recording {
  readonly version: 1
  readonly threadId: string
  /** The conversation before the first entry. */
  readonly start: ThreadRecord
  /** How many entries before the first were dropped, because a recorder holds a limited number. */
  readonly cut: number
  /** Whether arguments, results and tokens were masked. */
  readonly masked: boolean
  readonly entries: readonly TimelineEntry[]
}

/** A local step as plain JSON. */
export function toRecorded(step: LocalEvent): RecordedStep {
  switch (step.type) {
    case 'run-closed':
      return { type: step.type, end: recordedEnd(step.end) }
    case 'failed':
      return { type: step.type, error: recordedError(step.error) }
    default:
      return step
  }
}

/** The step in the form that the machine takes. */
export function toStep(step: RecordedStep): LocalEvent {
  switch (step.type) {
    case 'run-closed': {
      const { end } = step
      return { type: step.type, end: end.type === 'failed' ? { ...end, error: toError(end.error) } : end }
    }
    case 'failed':
      return { type: step.type, error: toError(step.error) }
    default:
      return step
  }
}

/** The recorded error, as one that can be thrown. */
export function toError({ code, message, data }: RecordedError): CountersignError {
  return new CountersignError(code, message, data)
}

function recordedEnd(end: RunEnd): RecordedEnd {
  return end.type === 'failed' ? { ...end, error: recordedError(end.error) } : end
}

function recordedError({ code, message, data }: CountersignError): RecordedError {
  return { code, message, data }
}

const kinds: ReadonlySet<unknown> = new Set<EntryKind>([
  'request',
  'event',
  'closed',
  'note',
  'action',
  'state',
])

/**
 * Parses a recording from JSON. Throws a CountersignError (`invalid-argument`) that explains what is missing
 * if it is invalid. The content of entries is only as trustworthy as the source of the file.
 */
export function readRecording(text: string): Recording {
  const value = parsed(text)
  if (!isRecord(value)) throw noRecording('it is no JSON object')
  if (value.version !== 1) throw noRecording('its `version` is not 1')
  if (typeof value.threadId !== 'string') throw noRecording('it has no `threadId`')
  if (!isThreadRecord(value.start)) throw noRecording('its `start` is no conversation')
  if (!Array.isArray(value.entries)) throw noRecording('it has no list of `entries`')
  const bad = value.entries.findIndex((entry) => !isEntry(entry))
  if (bad >= 0) throw noRecording(`its entry ${bad} is none`)
  const { threadId, start, entries, cut, masked } = value
  return {
    version: 1,
    threadId,
    start,
    cut: typeof cut === 'number' ? cut : 0,
    masked: masked === true,
    entries: entries as TimelineEntry[],
  }
}

function isEntry(value: unknown): boolean {
  if (!isRecord(value) || !kinds.has(value.kind)) return false
  switch (value.kind) {
    case 'request':
      return typeof value.run === 'number' && isRecord(value.input) && isInput(value.input)
    case 'event':
      return typeof value.run === 'number' && isRecord(value.event) && typeof value.event.type === 'string'
    case 'closed':
      return typeof value.run === 'number' && typeof value.how === 'string'
    default:
      return typeof value.text === 'string'
  }
}

function isInput({ messages, resume = [] }: Readonly<Record<string, unknown>>): boolean {
  return Array.isArray(messages) && Array.isArray(resume) && resume.every(isRecord)
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function noRecording(why: string): CountersignError {
  return new CountersignError(
    'invalid-argument',
    `This is no recording of a chat: ${why}. Choose a file that was exported from the devtools.`,
  )
}
