import {
  type AnyClientTool,
  type ChatState,
  type JsonSchema,
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
    warn: (message: string) => void
  },
): RunAgentInput {
  const { threadId, runId, tools = [], forwardedProps, warn } = options
  const resume = resumeEntries(state, options.again)
  return {
    threadId,
    runId,
    protocolVersion: PROTOCOL_VERSION,
    ...(state.shared !== undefined && { state: state.shared }),
    // AG-UI 1.0: a client keeps activities to itself.
    messages: toAGUIMessages(readMessages(state)).filter(({ role }) => role !== 'activity'),
    tools: tools.map((tool) => describeTool(tool, warn)),
    context: [],
    ...(forwardedProps !== undefined && { forwardedProps }),
    ...(resume.length > 0 && { resume }),
  }
}

/** What each schema says of itself, asked once: a library makes it anew each time. */
const described = new WeakMap<object, JsonSchema | undefined>()

function describeTool(tool: AnyClientTool, warn: (message: string) => void): Tool {
  const { name, description, metadata, input } = tool
  if (!tool.parameters && !described.has(input)) {
    const own = jsonSchemaOf(input)
    described.set(input, own)
    if (!own) {
      const { vendor } = input['~standard']
      warn(
        `The model is not told the parameters of the tool "${name}": its schema (${vendor}) gives no JSON Schema. Give the tool \`parameters\`.`,
      )
    }
  }
  const parameters = tool.parameters ?? described.get(input)
  return { name, description, ...(parameters && { parameters }), ...(metadata && { metadata }) }
}

/** Standard JSON Schema, which a library may have beside Standard Schema; a schema that has no JSON form throws. */
function jsonSchemaOf({ '~standard': standard }: AnyClientTool['input']): JsonSchema | undefined {
  const { jsonSchema }: { vendor: string; jsonSchema?: { input(of: { target: string }): JsonSchema } } =
    standard
  try {
    const { $schema: _, ...own } = jsonSchema?.input({ target: 'draft-2020-12' }) ?? {}
    return jsonSchema && own
  } catch {
    return undefined
  }
}
