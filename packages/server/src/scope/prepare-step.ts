import type { Message, TokenUsage, ToolContext } from '@countersign/core'
import type { Model } from '../model/model.js'
import type { AgentTool } from '../tools/toolkit.js'
import type { RunContext } from './run-context.js'

/** What {@link PrepareStep} gets. */
export interface StepContext {
  readonly threadId: string
  readonly runId: string
  /** 1 for the run's first call of the model. */
  readonly step: number
  /**
   * The conversation as the model would get it: each call followed by its result, without approval data. Data parts are in it too, as
   * messages with the role `activity`, which no model gets (those of earlier runs only with `threads`). Changing the list or a message does
   * not change the conversation.
   */
  readonly messages: readonly Message[]
  /** What the run has used so far. */
  readonly usage: readonly TokenUsage[]
  readonly context: RunContext
  /** Aborted when the run is to stop. */
  readonly signal: AbortSignal
  /** Adds to the step's reply: `write` of {@link ToolContext}. */
  readonly write: ToolContext['write']
}

/** What is different in one step. Everything left out is as the agent has it. */
export interface StepOverrides {
  readonly model?: Model | undefined
  readonly system?: string | undefined
  /**
   * All tools that the model may call in this step: names of the agent's and the client's tools, or tools. A call of any other tool is
   * refused as unknown. A tool that the agent does not have can't ask for approval, because the answer may arrive in another run.
   */
  readonly tools?: readonly (string | AgentTool)[] | undefined
  /**
   * The messages that the model gets, for example without old ones or with a summary. Results without their call are left out; a call
   * without its result ends the run with `unreconciled-history`. The conversation and the next step keep all messages.
   */
  readonly messages?: readonly Message[] | undefined
}

/** Decides about the model, the tools, the system prompt and the messages of one step. If it throws, the run ends with an error; a run that is stopped does not wait for it. */
export type PrepareStep = (
  step: StepContext,
) => StepOverrides | undefined | Promise<StepOverrides | undefined>
