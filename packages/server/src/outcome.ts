import { parseJson, textContent } from '@countersign/core'

/** How a tool call ended. Everything but `ok` is a failure; `kind` tells which one, never the content. `isSuccess` narrows the type. */
export type ToolOutcome = (ToolSuccess | ToolFailure) & {
  /** In messages for a model: the arguments that the user changed the call to before approving it. The model has only seen its own. */
  readonly editedInput?: unknown
}

export interface ToolSuccess {
  readonly kind: 'ok'
  /** What the tool returned; `undefined` is written as `null`. */
  readonly value: unknown
}

export interface ToolFailure {
  /**
   * `denied`: a user or a policy refused the call. `cancelled`: nobody approved or denied it. `execution_error`: it was tried, or could
   * not be. `unknown_tool`: no tool has that name. Applications may add their own kinds.
   */
  readonly kind: 'denied' | 'cancelled' | 'execution_error' | 'unknown_tool' | (string & {})
  readonly reason?: string | undefined
  /** A stable code in addition to the reason, such as `interrupted` or `approval-expired`. */
  readonly code?: string | undefined
}

/** A failure in a history: `{ type: 'execution-denied' | 'execution-cancelled' | 'execution-error', reason? }`. */
export interface FailurePayload {
  readonly type: `execution-${string}`
  readonly reason?: string
}

/** Marks a failed result in addition to its content, in `metadata.countersign` of the result event and the tool message. */
export interface FailureFlag {
  readonly outcome: 'denied' | 'cancelled' | 'error'
  readonly code?: string
}

/** Whether a call succeeded. */
export function isSuccess(outcome: ToolOutcome): outcome is ToolSuccess {
  return outcome.kind === 'ok'
}

/**
 * A success, if `value` is JSON (`undefined` becomes `null`); otherwise, for a cycle or a BigInt, an execution error. It contains a
 * copy, unaffected by later changes of the tool.
 */
export function succeeded(value: unknown): ToolOutcome {
  const written = writeJson(value)
  return written.ok
    ? { kind: 'ok', value: JSON.parse(written.text) }
    : failed('execution_error', written.reason)
}

/** A failure, without absent members. */
export function failed(kind: ToolFailure['kind'], reason?: string, code?: string): ToolFailure {
  return { kind, ...(reason === undefined ? {} : { reason }), ...(code === undefined ? {} : { code }) }
}

/**
 * The one text for a model's provider: a string that the tool returned as it is, the JSON of any other value, or
 * `{"kind":"denied","reason"?}` and so on; after the arguments, if the user changed them. The only place where an outcome becomes a string for a model.
 */
export function toProviderText({ editedInput, ...outcome }: ToolOutcome): string {
  if (editedInput !== undefined)
    return `The user changed the arguments of this call before approving it, to ${JSON.stringify(editedInput)}. Result: ${toProviderText(outcome)}`
  if (isSuccess(outcome)) {
    if (typeof outcome.value === 'string') return outcome.value
    const written = writeJson(outcome.value)
    return written.ok ? written.text : toProviderText(failed('execution_error', written.reason))
  }
  const { kind, reason } = outcome
  return JSON.stringify({ kind, reason })
}

/** A failure's payload in a history. */
export function toFailurePayload({ kind, reason }: ToolFailure): FailurePayload {
  const type: FailurePayload['type'] = kind === 'execution_error' ? 'execution-error' : `execution-${kind}`
  return { type, ...(reason === undefined ? {} : { reason }) }
}

/**
 * Converts an outcome to a tool message: its content and, for a failure, the flag. A string stays as it is, because other servers pass
 * it to their models, unless it is itself JSON: {@link fromResultContent} restores the same string either way.
 */
export function toResultContent(outcome: ToolOutcome): {
  readonly content: string
  readonly flag?: FailureFlag
} {
  const checked = isSuccess(outcome) ? succeeded(outcome.value) : outcome
  if (isSuccess(checked)) {
    const { value } = checked
    return { content: typeof value === 'string' ? textContent(value) : JSON.stringify(value) }
  }
  const { kind, code } = checked
  const word: FailureFlag['outcome'] =
    kind === 'denied' ? 'denied' : kind === 'cancelled' ? 'cancelled' : 'error'
  return {
    content: JSON.stringify(toFailurePayload(checked)),
    flag: { outcome: word, ...(code === undefined ? {} : { code }) },
  }
}

/**
 * Reads the outcome of a tool message. Only `flag` or `error` mark a failure: a tool may return an object
 * with its own `kind` or `type`.
 */
export function fromResultContent(
  content: unknown,
  flag: FailureFlag | undefined,
  error?: string | undefined,
): ToolOutcome {
  const value = typeof content === 'string' ? parseJson(content, content) : content
  if (flag === undefined) {
    return error === undefined ? { kind: 'ok', value } : failed('execution_error', error)
  }
  const payload = readPayload(value)
  // A payload without a reason has none: `error` may only repeat its kind.
  return payload === undefined
    ? failed(flag.outcome === 'error' ? 'execution_error' : flag.outcome, error, flag.code)
    : failed(payload.kind, payload.reason, flag.code)
}

function readPayload(
  value: unknown,
): { readonly kind: ToolFailure['kind']; readonly reason?: string | undefined } | undefined {
  if (typeof value !== 'object' || value === null || !('type' in value)) return undefined
  const { type } = value
  if (typeof type !== 'string' || !type.startsWith('execution-') || type === 'execution-ok') return undefined
  const kind = type === 'execution-error' ? 'execution_error' : type.slice('execution-'.length)
  return { kind, reason: 'reason' in value && typeof value.reason === 'string' ? value.reason : undefined }
}

type Written = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly reason: string }

function writeJson(value: unknown): Written {
  try {
    // JSON.stringify returns undefined for a function or a symbol, which can't be results.
    const text = JSON.stringify(value === undefined ? null : value)
    if (text !== undefined) return { ok: true, text }
    return { ok: false, reason: `The tool ran, but returned a ${typeof value}, which is not JSON.` }
  } catch (error) {
    // Not the error's message: a toJSON can throw anything. A RangeError means the stack, or a string that is too long.
    const what =
      error instanceof RangeError
        ? 'it is nested too deeply'
        : 'it holds a cycle, a BigInt, or a toJSON that throws'
    return { ok: false, reason: `The tool ran, but its result is not JSON: ${what}.` }
  }
}
