import { type Connection, type ConnectOptions, stream } from '@countersign/client'
import type { AGUIEvent, RunAgentInput } from '@countersign/core'

/** One request that reached the agent. The test decides what it streams, event by event, and when it ends. */
export interface Request {
  readonly input: RunAgentInput
  readonly signal: AbortSignal
  emit(...events: AGUIEvent[]): void
  finish(...asked: readonly string[]): void
  fail(message: string): void
}

/** An agent in the same process, stepped by hand. */
export function handAgent(): { readonly connection: Connection; readonly requests: Request[] } {
  const requests: Request[] = []
  const connection = stream((input, { signal }) => {
    const line = createLine()
    requests.push(createRequest(input, signal, line))
    return line.read(signal)
  })
  return { connection, requests }
}

function createRequest(input: RunAgentInput, signal: ConnectOptions['signal'], line: Line): Request {
  const { threadId, runId } = input
  line.push({ type: 'RUN_STARTED', threadId, runId })
  return {
    input,
    signal,
    emit: (...events) => {
      for (const event of events) line.push(event)
    },
    finish: (...asked) => {
      const interrupts = asked.map((id) => ({ id: `a-${id}`, reason: 'tool_call', toolCallId: id }))
      const outcome =
        asked.length > 0 ? { type: 'interrupt' as const, interrupts } : { type: 'success' as const }
      line.push({ type: 'RUN_FINISHED', threadId, runId, outcome })
      line.end()
    },
    fail: (message) => {
      line.push({ type: 'RUN_ERROR', message })
      line.end()
    },
  }
}

interface Line {
  push(event: AGUIEvent): void
  end(): void
  read(signal: AbortSignal): AsyncGenerator<AGUIEvent>
}

function createLine(): Line {
  const waiting: AGUIEvent[] = []
  let ended = false
  let wake = () => {}
  return {
    push: (event) => {
      waiting.push(event)
      wake()
    },
    end: () => {
      ended = true
      wake()
    },
    async *read(signal) {
      signal.addEventListener('abort', () => wake())
      while (!signal.aborted) {
        const event = waiting.shift()
        if (event) yield event
        else if (ended) return
        else
          await new Promise<void>((resolve) => {
            wake = resolve
          })
      }
    },
  }
}

/** A text as a whole message, or the beginning of one. */
export const textStart = (messageId: string): AGUIEvent => ({
  type: 'TEXT_MESSAGE_START',
  messageId,
  role: 'assistant',
})
export const textDelta = (messageId: string, delta: string): AGUIEvent => ({
  type: 'TEXT_MESSAGE_CONTENT',
  messageId,
  delta,
})
export const textEnd = (messageId: string): AGUIEvent => ({ type: 'TEXT_MESSAGE_END', messageId })
export const text = (messageId: string, words: string): AGUIEvent[] => [
  textStart(messageId),
  textDelta(messageId, words),
  textEnd(messageId),
]

/** A call of `delete_file` that asks the person, as the approval `a-<id>`. */
export const gatedCall = (id: string, path: string, parentMessageId = `m-${id}`): AGUIEvent[] => [
  { type: 'TOOL_CALL_START', toolCallId: id, toolCallName: 'delete_file', parentMessageId },
  { type: 'TOOL_CALL_ARGS', toolCallId: id, delta: JSON.stringify({ path }) },
  { type: 'TOOL_CALL_END', toolCallId: id },
  {
    type: 'CUSTOM',
    name: 'approval-requested',
    value: {
      toolCallId: id,
      toolName: 'delete_file',
      input: { path },
      approval: { id: `a-${id}`, needsApproval: true, options: ['deny', 'once'], token: `token-${id}` },
    },
  },
]

export const result = (toolCallId: string, content: string): AGUIEvent => ({
  type: 'TOOL_CALL_RESULT',
  toolCallId,
  messageId: `r-${toolCallId}`,
  role: 'tool',
  content,
})
