import { CountersignError } from '@countersign/core'

/** Answers wait for their calls, and the agent has no tools at all. Code `toolkit-required`. */
export class ToolkitRequiredError extends CountersignError {
  /** Names of the tools whose calls wait: the approved ones first, then the denied. */
  readonly pendingApprovals: readonly string[]
  readonly isRetryable = false

  constructor(pendingApprovals: readonly string[]) {
    const names = pendingApprovals.join(', ') || 'some tools'
    super(
      'toolkit-required',
      `Answers for ${names} are waiting, but this agent has no tools: give createAgent the tools it was asked about.`,
      {
        pendingApprovals,
      },
    )
    this.pendingApprovals = pendingApprovals
  }
}

/** A call was approved and its tool is gone. Code `tool-not-found`; nothing ran. */
export class ToolNotFoundError extends CountersignError {
  readonly toolName: string
  readonly toolParams: unknown
  readonly availableTools: readonly string[]

  constructor(toolName: string, toolParams: unknown, availableTools: readonly string[]) {
    super(
      'tool-not-found',
      `The approved tool ${JSON.stringify(toolName)} does not exist any more: give createAgent that tool, or answer no.`,
      { toolName, availableTools },
    )
    this.toolName = toolName
    this.toolParams = toolParams
    this.availableTools = availableTools
  }
}
