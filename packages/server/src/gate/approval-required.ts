import { type ApprovalOption, CountersignError, isRecord, REDACTED, sanitizeArgs } from '@countersign/core'
import { isMarked } from '../tools/tool-errors.js'

/** What a tool that asks by itself says. */
export interface RequiredApproval {
  readonly toolName: string
  /** What the person is told. Default: that the tool needs an approval. */
  readonly message?: string | undefined
  /**
   * The arguments of the call as shown: the same, with values masked as `[REDACTED]` where the person must not read them. Values under
   * keys that name secrets are masked here. Arguments that differ otherwise are not shown. Default: what the gate shows.
   */
  readonly args?: unknown
  /** Default `['deny', 'once']`. Of these, the person is offered what the tool's `scopes` allow. */
  readonly options?: readonly ApprovalOption[] | undefined
}

const mark = Symbol.for('countersign.approval-required')

/**
 * Thrown by a tool that finds out while it runs that somebody has to say yes: the call becomes a request like any other, and after
 * a yes the tool runs again, from the start, with `context.approved`. Throw it before anything has happened, and not where
 * `context.approved` is true. Code `approval-required`; the message is what the person reads, the rest is in `data`.
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

  /** Plain JSON, for a log. To throw it on in another process, make a new error of it. */
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
 * Whether the constructor of {@link ApprovalRequiredError} made a value, also that of a second copy of this package. A code says nothing:
 * an error that came from another service, and that a tool throws on, may have any.
 */
export function isApprovalRequired(value: unknown): value is ApprovalRequiredError {
  return isMarked(value, mark)
}

/** Whether one value is another with some of its parts masked, and nothing else changed. Both are plain JSON. */
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
