import {
  type AnyClientTool,
  type ChatState,
  isRecord,
  isTerminal,
  type JsonSchema,
  type MessagePart,
  omitUndefined,
  PROTOCOL_VERSION,
  type RequestOptions,
  type ResumeEntry,
  type RunAgentInput,
  readMessages,
  resumeEntries,
  type Tool,
  toAGUIMessages,
  type UIMessage,
} from '@countersign/core'

/** The request for one run: the conversation and, in `resume`, the answers that the server does not have. */
export function createRequest(
  state: ChatState,
  options: {
    threadId: string
    runId: string
    tools?: readonly AnyClientTool[] | undefined
    context?: RunAgentInput['context'] | undefined
    forwardedProps?: unknown
    /** What this request has in addition. */
    own: RequestOptions
    /** Answers with unknown delivery are sent again. */
    again: boolean
    warn: (message: string) => void
  },
): RunAgentInput {
  const { threadId, runId, tools = [], context = [], own, warn } = options
  const resume = resumeEntries(state, options.again, runId)
  return omitUndefined({
    ...own.body,
    threadId,
    runId,
    protocolVersion: PROTOCOL_VERSION,
    state: state.shared,
    // AG-UI 1.0: a client does not send activities.
    messages: toAGUIMessages(readMessages(state).map((message) => withoutSeen(message, resume))).filter(
      ({ role }) => role !== 'activity',
    ),
    tools: tools.map((tool) => describeTool(tool, warn)),
    context: [...context],
    forwardedProps: merged(options.forwardedProps, own.forwardedProps),
    resume: resume.length > 0 ? resume : undefined,
  })
}

/** The server has these previews, or gets them with the answer: repeated in each request, they would only make it larger. */
function withoutSeen(message: UIMessage, resume: readonly ResumeEntry[]): UIMessage {
  const isSeen = (part: MessagePart) =>
    part.type === 'tool-call' &&
    part.approval?.preview !== undefined &&
    (isTerminal(part.state) || resume.some(({ interruptId }) => interruptId === part.approval?.id))
  return message.parts.some(isSeen)
    ? { ...message, parts: message.parts.map((part) => (isSeen(part) ? withoutPreview(part) : part)) }
    : message
}

function withoutPreview(part: MessagePart): MessagePart {
  if (part.type !== 'tool-call' || !part.approval) return part
  const { preview, previous, edited, ...approval } = part.approval
  return { ...part, approval }
}

/** The later ones win. */
export function mergeOptions(all: readonly (RequestOptions | undefined)[]): RequestOptions {
  return all.reduce<RequestOptions>(
    (before, { headers, body, forwardedProps } = {}) => ({
      headers: { ...before.headers, ...headers },
      body: { ...before.body, ...body },
      forwardedProps: merged(before.forwardedProps, forwardedProps),
    }),
    {},
  )
}

function merged(before: unknown, now: unknown): unknown {
  if (now === undefined) return before
  return isRecord(before) && isRecord(now) ? { ...before, ...now } : now
}

function describeTool(tool: AnyClientTool, warn: (message: string) => void): Tool {
  const { name, description, metadata } = tool
  const parameters = tool.parameters ?? jsonSchemaOf(tool, warn)
  return omitUndefined({ name, description, parameters, metadata })
}

/** Cached per schema: libraries generate it anew each time. */
const known = new WeakMap<object, JsonSchema | undefined>()

/** Uses Standard JSON Schema, which a library may support besides Standard Schema. Throws inside for a schema without a JSON form. */
function jsonSchemaOf(
  { name, input }: AnyClientTool,
  warn: (message: string) => void,
): JsonSchema | undefined {
  if (known.has(input)) return known.get(input)
  const standard: Pick<(typeof input)['~standard'], 'vendor'> & {
    jsonSchema?: { input(of: { target: string }): JsonSchema }
  } = input['~standard']
  let schema: JsonSchema | undefined
  try {
    const { $schema: _, ...own } = standard.jsonSchema?.input({ target: 'draft-2020-12' }) ?? {}
    schema = standard.jsonSchema && own
  } catch {}
  if (!schema)
    warn(
      `The model does not know the parameters of the tool "${name}": its schema (${standard.vendor}) gives no JSON Schema. Give the tool \`parameters\`.`,
    )
  known.set(input, schema)
  return schema
}
