import {
  type AnyClientTool,
  type ChatState,
  PROTOCOL_VERSION,
  type RunAgentInput,
  readMessages,
  resumeEntries,
  type Tool,
  toAGUIMessages,
} from '@countersign/core'

/** The request for one run: the conversation, and in `resume` the answers the server has not had. */
export function createRequest(
  state: ChatState,
  options: {
    threadId: string
    runId: string
    tools?: readonly AnyClientTool[] | undefined
    forwardedProps?: unknown
    /** Answers whose fate is unknown are offered again. */
    again: boolean
  },
): RunAgentInput {
  const { threadId, runId, tools = [], forwardedProps } = options
  const resume = resumeEntries(state, options.again)
  return {
    threadId,
    runId,
    protocolVersion: PROTOCOL_VERSION,
    ...(state.shared !== undefined && { state: state.shared }),
    // AG-UI 1.0: a client keeps activities to itself.
    messages: toAGUIMessages(readMessages(state)).filter(({ role }) => role !== 'activity'),
    tools: tools.map(describeTool),
    context: [],
    ...(forwardedProps !== undefined && { forwardedProps }),
    ...(resume.length > 0 && { resume }),
  }
}

function describeTool(tool: AnyClientTool): Tool {
  const { name, description, parameters, metadata } = tool
  return { name, description, ...(parameters && { parameters }), ...(metadata && { metadata }) }
}
