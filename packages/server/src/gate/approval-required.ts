import { type ApprovalOption, CountersignError, sanitizeArgs } from '@countersign/core'

/** What a tool that asks by itself says. */
export interface RequiredApproval {
  readonly toolName: string
  /** What the person is told. Default: that the tool needs an approval. */
  readonly message?: string | undefined
  /** The arguments as shown; values under keys that name secrets are masked here. Default: what the gate shows. */
  readonly args?: unknown
  /** Default `['deny', 'once']`. */
  readonly options?: readonly ApprovalOption[] | undefined
}

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
    const shown = sanitizeArgs(args)
    super('approval-required', message ?? `${toolName} needs your approval.`, {
      toolName,
      options,
      ...(shown !== undefined && { args: shown }),
    })
    this.toolName = toolName
    this.args = shown
    this.options = options
  }

  /** Plain JSON that {@link readApprovalRequired} reads again, also in another process. */
  toJSON(): {
    readonly code: string
    readonly message: string
    readonly data: Readonly<Record<string, unknown>>
  } {
    const { code, message, data } = this
    return { code, message, data }
  }
}

/** What a thrown value asks for: an {@link ApprovalRequiredError}, one of another copy of this package, or the JSON of one. */
export function readApprovalRequired(
  value: unknown,
):
  | { readonly message: string; readonly args: unknown; readonly options: readonly ApprovalOption[] }
  | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { code, message, data }: { code?: unknown; message?: unknown; data?: unknown } = value
  if (code !== 'approval-required' || typeof message !== 'string') return undefined
  const { args, options }: { args?: unknown; options?: unknown } = Object(data)
  // it may come from anybody's throw: what is shown is masked and plain JSON either way
  return {
    message,
    args: sanitizeArgs(args),
    options: Array.isArray(options) ? options.filter(isOption) : [],
  }
}

function isOption(value: unknown): value is ApprovalOption {
  return value === 'deny' || value === 'once' || value === 'session'
}
