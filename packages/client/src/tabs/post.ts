import {
  type AGUIEvent,
  CountersignError,
  isCountersignError,
  isRecord,
  type LocalEvent,
  type MirrorState,
} from '@countersign/core'
import { type Check, count, list, optional, shape, text } from './checks.js'
import { isCommand, isMirror, isStep } from './forms.js'

export type Step = AGUIEvent | LocalEvent

/** A message between tabs. `from` is the sender. */
export type Post =
  /** A tab joins and asks for the state. */
  | { readonly type: 'hello'; readonly from: string }
  /** A tab leads from now on. */
  | { readonly type: 'lead'; readonly from: string }
  /** The complete state, after that many posts of steps; `taken` are the commands in progress. */
  | {
      readonly type: 'state'
      readonly from: string
      readonly to: string
      readonly at: number
      readonly state: MirrorState
      readonly taken: readonly string[]
    }
  | {
      readonly type: 'steps'
      readonly from: string
      readonly at: number
      readonly steps: readonly Step[]
      readonly taken: readonly string[]
    }
  | {
      readonly type: 'command'
      readonly from: string
      readonly id: string
      readonly name: string
      readonly value?: unknown
      /** Until when (ms since the epoch) it may be started; after that, the sender has given it up. */
      readonly until?: number | undefined
    }
  | { readonly type: 'done'; readonly from: string; readonly id: string; readonly result?: unknown }

/** The version of this format. Messages of other versions are ignored. */
const version = 1

/** JSON, because structured clone loses classes and rejects functions; all contents are JSON by construction. */
export function writePost(post: Post): string {
  return JSON.stringify({ ...post, version }, (_, value: unknown) =>
    isCountersignError(value) ? writeError(value) : value,
  )
}

/** `undefined` for anything but a complete, well-formed message of this version. */
export function readPost(data: unknown): Post | undefined {
  const value = typeof data === 'string' ? parsed(data) : undefined
  if (!isRecord(value) || value.version !== version || typeof value.from !== 'string') return undefined
  const { type } = value
  const fits = typeof type === 'string' && Object.hasOwn(forms, type) && forms[type]?.(value)
  return fits ? (value as Post) : undefined
}

const forms: Readonly<Record<string, Check>> = {
  hello: shape({}),
  lead: shape({}),
  state: shape({ to: text, at: count, state: isMirror, taken: list(text) }),
  steps: shape({ at: count, steps: list(isStep), taken: list(text) }),
  command: (value) =>
    isRecord(value) &&
    text(value.id) &&
    text(value.name) &&
    optional(count)(value.until) &&
    isCommand(String(value.name), value.value),
  done: shape({ id: text }),
}

function parsed(data: string): unknown {
  try {
    return JSON.parse(data, (key, value: unknown) =>
      key === 'error' || key === 'failure' ? (readError(value) ?? value) : value,
    )
  } catch {
    return undefined
  }
}

const mark = 'countersign.error'

function writeError({ code, message, data }: CountersignError): unknown {
  return { [mark]: code, message, data }
}

function readError(value: unknown): CountersignError | undefined {
  if (!isRecord(value) || typeof value[mark] !== 'string' || typeof value.message !== 'string')
    return undefined
  const data = isRecord(value.data) ? value.data : {}
  // A known code: `version` guarantees it.
  return new CountersignError(value[mark] as CountersignError['code'], value.message, data)
}
