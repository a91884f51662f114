import { asString, CountersignError, type ErrorCode } from '@countersign/core'

/** The method of an agent in which an error occurred. */
export type AgentMethod = 'generate' | 'stream'

interface ErrorOrigin {
  readonly method?: AgentMethod | undefined
  readonly description?: string | undefined
}

const mark = Symbol.for('countersign.tool-error')

/**
 * Thrown by a tool to tell the model and the user what went wrong: both read its message. Of any other error they only learn
 * that the tool failed, because such messages contain hosts, paths and secrets; the server's log has it. Code `tool-failed`.
 *
 * @example
 * if (account === undefined) throw new ToolError('There is no account of that name.')
 */
export class ToolError extends CountersignError {
  constructor(
    message: string,
    {
      code = 'tool-failed',
      data,
      cause,
    }: {
      /** Default `tool-failed`. */
      readonly code?: ErrorCode | undefined
      /** For the application; never sent to the model or the user. */
      readonly data?: Readonly<Record<string, unknown>> | undefined
      /** For the application; never sent to the model or the user. */
      readonly cause?: unknown
    } = {},
  ) {
    super(code, message, data, cause)
    Object.defineProperty(this, mark, { value: true })
  }
}

/** Whether an error has its own mark. A tool may throw anything, even a proxy that throws when it is read: that has none. */
export function isMarked(value: unknown, own: symbol): boolean {
  try {
    return value instanceof Error && Object.hasOwn(value, own)
  } catch {
    return false
  }
}

/** Whether a value was created by the constructor of {@link ToolError}, in this or another copy of this package. */
export function isToolError(value: unknown): value is ToolError {
  return isMarked(value, mark)
}

/** What the model and the user learn of an error that a tool, or its preview, threw. */
export function toldOf(error: unknown, who: string, toolCallId: string): string {
  const told = isToolError(error) ? messageOf(error) : undefined
  return told ?? `The ${who} failed. The log of the server has the cause, under ${toolCallId}.`
}

/** A tool can make it anything, even something that throws when it is read. */
function messageOf(error: ToolError): string | undefined {
  try {
    return asString(error.message)
  } catch {
    return undefined
  }
}

export function invalidTool(
  message: string,
  data: Readonly<Record<string, unknown>> = {},
  cause?: unknown,
): CountersignError {
  return new CountersignError('invalid-tool', message, data, cause)
}

/** Logs what they don't learn. */
export function logThrown(
  warn: (message: string, error?: unknown) => void,
  error: unknown,
  toolName: string,
  toolCallId: string,
): void {
  if (!isToolError(error)) warn(`The tool ${toolName} threw in the call ${toolCallId}.`, error)
}

/** The error of a run that ends because a tool threw (`failureMode: 'throw'`). Code `tool-failed`. */
export function toolFailed(name: string, cause: unknown): CountersignError {
  const told = isToolError(cause) ? messageOf(cause) : undefined
  return new CountersignError('tool-failed', told ?? `The tool ${name} failed.`, { tool: name }, cause)
}

/** There are answers for pending calls, but the agent has no tools at all. Code `toolkit-required`. */
export class ToolkitRequiredError extends CountersignError {
  /** Names of the pending calls' tools: the approved ones first, then the denied. */
  readonly pendingApprovals: readonly string[]
  /** A retry fails again: the agent needs its tools. */
  readonly isRetryable = false
  readonly method?: AgentMethod
  readonly description?: string

  constructor(pendingApprovals: readonly string[], { method, description }: ErrorOrigin = {}) {
    const names = pendingApprovals.join(', ') || 'some tools'
    super(
      'toolkit-required',
      `Answers for ${names} are waiting, but this agent has no tools: give createAgent these tools, or send another message to continue without them.`,
      { pendingApprovals, ...(method !== undefined && { method }) },
    )
    this.pendingApprovals = pendingApprovals
    if (method !== undefined) this.method = method
    if (description !== undefined) this.description = description
  }

  /** The error as plain data. */
  toJSON() {
    const { name, code, message, pendingApprovals, isRetryable, method, description } = this
    return { name, code, message, pendingApprovals, isRetryable, method, description }
  }

  /** Restores an error from {@link ToolkitRequiredError.toJSON}. */
  static fromJSON(value: {
    readonly pendingApprovals: readonly string[]
    readonly method?: AgentMethod | undefined
    readonly description?: string | undefined
  }): ToolkitRequiredError {
    return new ToolkitRequiredError(value.pendingApprovals, value)
  }
}

/** A call was approved, but its tool no longer exists. Code `tool-not-found`; nothing ran. */
export class ToolNotFoundError extends CountersignError {
  readonly toolName: string
  readonly toolParams: unknown
  readonly availableTools: readonly string[]
  readonly method?: AgentMethod

  constructor(
    toolName: string,
    toolParams: unknown,
    availableTools: readonly string[],
    { method }: Pick<ErrorOrigin, 'method'> = {},
  ) {
    super(
      'tool-not-found',
      `The approved tool ${JSON.stringify(toolName)} no longer exists: give createAgent that tool, or deny the call, or send another message to continue without it.`,
      { toolName, availableTools, ...(method !== undefined && { method }) },
    )
    this.toolName = toolName
    this.toolParams = toolParams
    this.availableTools = availableTools
    if (method !== undefined) this.method = method
  }

  /** The error as plain data, without `toolParams`: the call's arguments come from the model and should not be logged by default. */
  toJSON() {
    const { name, code, message, toolName, availableTools, method } = this
    return { name, code, message, toolName, availableTools, method }
  }
}
