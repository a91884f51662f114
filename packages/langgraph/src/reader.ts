import { type AGUIEvent, isRecord, PROTOCOL_VERSION, type RunAgentInput } from '@countersign/core'
import { createMessageReader } from './message-reader.js'
import { callsOf, type Question, readQuestions, toInterrupts } from './questions.js'
import { shownIn } from './shown.js'
import {
  type Fields,
  grouped,
  type LangGraphInterrupt,
  type LangGraphState,
  listOf,
  readInterrupts,
  readMessage,
  readMessages,
} from './wire.js'

/** Converts the events of LangGraph's streams to AG-UI events. One run here may be two of the server's. */
export interface LangGraphReader {
  /** The interrupts that wait for the user, once a stream has ended. */
  readonly questions: readonly Question[]
  /** Calls of the model's last message without a result. */
  readonly openCalls: readonly string[]
  /** The server has reported that the run failed; nothing more comes. */
  readonly isFailed: boolean
  /** Whether the last stream ended before or within a step of the graph. A run has at least one step, and reports each. */
  readonly isCut: boolean
  start(): readonly AGUIEvent[]
  /** A stream of the server starts. */
  begin(): void
  read(event: string | undefined, data: unknown): readonly AGUIEvent[]
  /** Emits what a thread has and the page does not. */
  catchUp(state: LangGraphState): readonly AGUIEvent[]
  /** The user continues without answers: returns which of these calls, and of those already emitted, have no result. */
  abandon(toolCallIds: readonly string[]): {
    readonly ids: readonly string[]
    readonly events: readonly AGUIEvent[]
  }
  /** The last event of the run. */
  end(): readonly AGUIEvent[]
}

export function createLangGraphReader({
  threadId,
  runId,
  messages,
  tools = [],
  resume = [],
}: RunAgentInput): LangGraphReader {
  let out: AGUIEvent[] = []
  const interrupts = new Map<string, LangGraphInterrupt[]>()
  let isFailed = false
  let hasStepped = false
  /** Nodes that have sent messages and whose step has not ended. */
  const speaking = new Set<string>()
  const clientTools = new Set(tools.map(({ name }) => name))
  const denied = deniedCalls(resume)
  const told = createMessageReader((event) => void out.push(event), shownIn(messages), clientTools)

  function take(): readonly AGUIEvent[] {
    const events = out
    out = []
    return events
  }

  const steps: Readonly<Record<string, (data: unknown) => void>> = {
    messages(data) {
      const [chunk, metadata] = listOf(data)
      const message = readMessage(chunk)
      if (!message) return
      const node = nodeOf(metadata)
      if (message.type === 'ai' && node !== undefined) speaking.add(node)
      told.grow(message, denied)
    },
    updates(data) {
      hasStepped = true
      for (const [node, update] of Object.entries(isRecord(data) ? data : {})) {
        speaking.delete(node)
        if (node === '__interrupt__') ask(readInterrupts(update))
        else for (const one of listOf(update)) takeMessages(one)
      }
    },
    values(data) {
      if (!isRecord(data)) return
      const { messages: _, __interrupt__: asked, ...snapshot } = data
      ask(readInterrupts(asked))
      if (Object.keys(snapshot).length > 0 || !asked) out.push({ type: 'STATE_SNAPSHOT', snapshot })
    },
    error(data) {
      const { error: code, message = code } = isRecord(data) ? data : { message: data }
      isFailed = true
      told.end()
      out.push({
        type: 'RUN_ERROR',
        message: typeof message === 'string' ? message : 'The graph failed.',
        ...(typeof code === 'string' && { code }),
      })
    },
  }

  function takeMessages(update: unknown): void {
    for (const message of readMessages(isRecord(update) ? update.messages : undefined))
      told.take(message, denied)
  }

  /** The same interrupt may arrive in several ways. */
  function ask(asked: readonly LangGraphInterrupt[]): void {
    for (const { id } of asked) interrupts.delete(id)
    for (const [id, these] of grouped(asked, ({ id }) => id)) interrupts.set(id, these)
  }

  const questions = () => readQuestions([...interrupts.values()].flat(), told.lastCalls, clientTools)

  return {
    get questions() {
      return questions()
    },
    get openCalls() {
      return told.openCalls
    },
    get isFailed() {
      return isFailed
    },
    get isCut() {
      return !isFailed && interrupts.size === 0 && (speaking.size > 0 || !hasStepped)
    },
    begin() {
      hasStepped = false
    },
    start: () => [{ type: 'RUN_STARTED', threadId, runId, protocolVersion: PROTOCOL_VERSION }],
    read(event = '', data) {
      if (!isFailed && Object.hasOwn(steps, event)) steps[event]?.(data)
      return take()
    },
    catchUp(state) {
      for (const message of state.messages) told.take(message, denied)
      ask(state.interrupts)
      return take()
    },
    abandon(toolCallIds) {
      interrupts.clear()
      const ids = told.abandon([...new Set([...toolCallIds, ...told.openCalls])])
      return { ids, events: take() }
    },
    end() {
      if (isFailed) return []
      told.end()
      out.push(finished(questions()))
      return take()
    },
  }

  function finished(asked: readonly Question[]): AGUIEvent {
    const run = { type: 'RUN_FINISHED', threadId, runId } as const
    const wanted = asked.flatMap(toInterrupts)
    if (wanted.length > 0) return { ...run, outcome: { type: 'interrupt', interrupts: wanted } }
    const pendingToolCallIds = asked.flatMap(callsOf).map(({ id }) => id)
    return { ...run, outcome: { type: 'success', pendingToolCallIds } }
  }
}

/** The calls that a request denies: approval ids end with the call's id. */
function deniedCalls(resume: NonNullable<RunAgentInput['resume']>): ReadonlySet<string> {
  return new Set(
    resume.flatMap(({ interruptId, payload }) =>
      isRecord(payload) && payload.approved === true ? [] : [interruptId.slice(interruptId.indexOf(':') + 1)],
    ),
  )
}

/** The node of the graph itself, even for messages of its subgraphs. */
function nodeOf(metadata: unknown): string | undefined {
  const { langgraph_checkpoint_ns: place }: Fields = isRecord(metadata) ? metadata : {}
  return typeof place === 'string' ? /^[^:|]+/.exec(place)?.[0] : undefined
}
