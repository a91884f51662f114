import { type ApprovalOption, CountersignError, isRecord, REDACTED, sanitizeArgs } from '@countersign/core'
import { isMarked } from '../tools/tool-errors.js'

/** The approval that a tool requires while it runs. */
export interface RequiredApproval {
  readonly toolName: string
  /** The message for the user. Default: that the tool needs approval. */
  readonly message?: string | undefined
  /**
   * The arguments to show: those of the call, with values that the user must not read masked as `[REDACTED]`. Values under keys that
   * name secrets are masked here. Arguments that differ in any other way are not shown. Default: what the gate shows.
   */
  readonly args?: unknown
  /** Default `['deny', 'once']`. The user is offered those that the tool's `scopes` allow. */
  readonly options?: readonly ApprovalOption[] | undefined
}

const mark = Symbol.for('countersign.approval-required')

/**
 * Thrown by a tool that discovers while it runs that it needs approval: the call gets an approval request like any other, and after
 * approval the tool runs again, from the start, with `context.approved`. Throw it before anything has happened, and not if
 * `context.approved` is true. Code `approval-required`; the message is for the user, the rest is in `data`.
 *
 * @example
 * if (amount > limit && !context.approved) throw new ApprovalRequiredError({ toolName: 'pay', message: `Pay ${amount}?` })
 */
export class ApprovalRequiredError extends CountersignError {
  readonly toolName: string
  readonly args: unknown
  readonly options: readonly ApprovalOption[]

  constructor({ toolName, message, args, options = ['deny', 'once'] }: RequiredApproval) {
    const shown = sanitizeArgs(args, { maxLength: Number.POSITIVE_INFINITY })
    super('approval-required', message ?? `${toolName} needs your approval.`, {
      toolName,
      options,
      ...(shown !== undefined && { args: shown }),
    })
    this.toolName = toolName
    this.args = shown
    this.options = options
    Object.defineProperty(this, mark, { value: true })
  }

  /** Plain JSON, for a log. To throw it in another process, create a new error from it. */
  toJSON(): {
    readonly code: string
    readonly message: string
    readonly data: Readonly<Record<string, unknown>>
  } {
    const { code, message, data } = this
    return { code, message, data }
  }
}

/**
 * Whether a value was created by the constructor of {@link ApprovalRequiredError}, in this or another copy of this package. The code
 * proves nothing: an error that a tool passes on from another service may have any code.
 */
export function isApprovalRequired(value: unknown): value is ApprovalRequiredError {
  return isMarked(value, mark)
}

/** Whether `shown` equals `real` except for masked parts. Both are plain JSON. */
export function isMaskOf(shown: unknown, real: unknown): boolean {
  if (shown === REDACTED) return true
  if (Array.isArray(shown) || Array.isArray(real)) {
    return (
      Array.isArray(shown) &&
      Array.isArray(real) &&
      shown.length === real.length &&
      shown.every((item, index) => isMaskOf(item, real[index]))
    )
  }
  if (!isRecord(shown) || !isRecord(real)) return shown === real
  const keys = Object.keys(shown)
  return (
    keys.length === Object.keys(real).length &&
    keys.every((key) => Object.hasOwn(real, key) && isMaskOf(shown[key], real[key]))
  )
}
