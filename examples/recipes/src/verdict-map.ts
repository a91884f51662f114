import { type Agent, handleChat, readVerdictMap, resumeFromMap } from '@countersign/server'

/**
 * A route whose client knows nothing of `resume`. Its first request ends with the requests for approval; the next one carries the
 * same history and, under `forwardedProps.verdicts`, what the person decided: `{ [callId]: { decision: 'approve' } }`. What the
 * client leaves out is cancelled. The run checks the verdicts like any other answer.
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
