import { type Agent, handleChat } from '@countersign/server'
import { readVerdictMap, resumeFromMap } from '@countersign/server/plan'

/**
 * A route for a client that knows nothing of `resume`. Its first request ends with the approval requests. The next one carries
 * the same history and, under `forwardedProps.verdicts`, the user's decisions: `{ [callId]: { decision: 'approve' } }`. Calls
 * without a decision are cancelled. The run checks the verdicts like any other answer.
 */
export function verdictMapRoute(agent: Agent): (request: Request) => Promise<Response> {
  return (request) =>
    handleChat(agent, request, {
      prepare: (input) => {
        const verdicts = readVerdictMap(input.forwardedProps)
        return { ...input, resume: resumeFromMap(input.messages, verdicts) }
      },
    })
}
