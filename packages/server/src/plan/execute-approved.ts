import { isCountersignError } from '@countersign/core'
import { promptFromAGUI } from '../prompt/from-ui.js'
import type { PromptToolResult } from '../prompt/parts.js'
import { createPartReader } from '../prompt/stream.js'
import type { Agent } from '../run/agent.js'
import type { RunInput, RunOptions } from '../run/run.js'

/**
 * Carries out the answers of a request and closes abandoned calls, without calling the model: the first half of a run, with the same
 * checks. Returns the results: approved calls first, then denied ones, each in the order of the calls.
 *
 * @throws ToolkitRequiredError, ToolNotFoundError before anything runs; the error of a tool whose `failureMode` is `throw`.
 */
export async function executeApprovedToolCalls(
  agent: Agent,
  input: RunInput,
  options: Omit<RunOptions, 'maxSteps'> = {},
): Promise<readonly PromptToolResult[]> {
  const read = createPartReader({ history: promptFromAGUI(input.messages) })
  try {
    const { events } = await agent.generate(input, { ...options, maxSteps: 0 })
    return events
      .flatMap((event) => read(event))
      .filter((part) => part.type === 'tool-result')
      .filter((part) => !part.preliminary)
  } catch (error) {
    // The run's error says where it happened, its cause what happened.
    throw isCountersignError(error) && isCountersignError(error.cause) ? error.cause : error
  }
}
