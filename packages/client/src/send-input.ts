import {
  CountersignError,
  type FilePart,
  isRecord,
  omitUndefined,
  type RequestOptions,
  type TextPart,
  type ToolMap,
  type UIMessage,
} from '@countersign/core'
import { copyJson } from './json.js'
import { type Session, unsafeCast } from './session.js'

/** The content of a user message: a text, or a text with files, or both in any order (`parts`, which come last). */
export type SendInput =
  | string
  | {
      readonly text?: string
      /** `readFiles` of `@countersign/client/files` makes them from a `FileList`, files or blobs. */
      readonly files?: readonly FilePart[]
      readonly parts?: readonly (string | TextPart | FilePart)[]
      /** Of the message. Must be new, or that of the message it replaces. Default: generated. */
      readonly id?: string | undefined
      readonly metadata?: Readonly<Record<string, unknown>>
      /** An earlier user message, which this one replaces: it is dropped, with everything after it. */
      readonly messageId?: string | undefined
    }

/** What the request of a message has in addition, and when `sendMessage` resolves. */
export interface SendOptions extends RequestOptions {
  /** When to resolve: at the end of the message's `run` (default), or of the whole `turn`, when nothing follows without the user. */
  readonly until?: 'run' | 'turn' | undefined
}

/** The message of `sendMessage`, or why it is none. */
export function readUserMessage(
  input: SendInput,
  session: Pick<Session<ToolMap>, 'newId' | 'now'>,
): UIMessage | CountersignError {
  const { value, fault } = copyJson(typeof input === 'string' ? { text: input } : input)
  const { text = '', files = [], parts = [], metadata, id = session.newId() } = record(value)
  const fits =
    typeof text === 'string' &&
    Array.isArray(files) &&
    files.every(isFile) &&
    Array.isArray(parts) &&
    (metadata === undefined || isRecord(metadata)) &&
    typeof id === 'string'
  if (!fits) return invalid(noMessage)
  const all = [text, ...files, ...parts]
    .map((part) => (typeof part === 'string' ? { type: 'text' as const, text: part } : part))
    .filter((part) => !isBlank(part))
  if (all.length === 0 || !all.every((part) => isText(part) || isFile(part)))
    return invalid(fault ? `${fault} ${noMessage}` : noMessage)
  return { id, role: 'user', parts: all, createdAt: session.now(), ...(metadata && { metadata }) }
}

export const noMessage =
  'sendMessage needs text, or `{ text, files, parts, metadata }`. A file is `{ type: "file", media, source }`: see `readFiles`.'

export function invalid(message: string): CountersignError {
  return new CountersignError('invalid-argument', message)
}

/** Copied like every value that may be stored or sent to another tab. */
export function requestOptions(options: SendOptions): {
  readonly value: RequestOptions
  readonly until: SendOptions['until'] | undefined
  readonly fault: string | undefined
} {
  const { headers, body, forwardedProps, until } = record(options)
  const { value, fault } = copyJson(omitUndefined({ headers, body, forwardedProps }))
  return { value: unsafeCast(value ?? {}), until, fault }
}

/** An invalid value becomes an empty record, in which the command finds nothing to act on, and reports that. */
export function record<T>(value: T): T & Record<string, unknown> {
  return unsafeCast(isRecord(value) ? value : {})
}

function isText(value: unknown): value is TextPart {
  return isRecord(value) && value.type === 'text' && typeof value.text === 'string'
}

function isBlank(part: unknown): boolean {
  return isText(part) && part.text.trim() === ''
}

/** Excludes the platform's `File`, whose bytes would not be sent. */
function isFile(value: unknown): value is FilePart {
  return (
    isRecord(value) &&
    value.type === 'file' &&
    isRecord(value.source) &&
    typeof value.source.value === 'string'
  )
}
