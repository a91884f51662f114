import { type AGUIEvent, asString, PROTOCOL_VERSION } from '@countersign/core'
import { field, type RawChunk, readChunk } from './fields.js'
import type { AiSdkMessage } from './message.js'
import { type AiSdkOutcome, createCallReader } from './read-calls.js'
import { createStepReader } from './read-step.js'

export interface AiSdkReaderOptions {
  readonly threadId: string
  readonly runId: string
  /** The assistant message that the stream continues: the last message of the request, if it was the assistant's. */
  readonly continued?: AiSdkMessage | undefined
}

/** Takes the chunks of one AI SDK stream in order and returns the AG-UI events of each. */
export interface AiSdkReader {
  /** The number of chunks taken. */
  readonly count: number
  /** Whether the server has finished, successfully or not. If the stream ends before, it broke off. */
  readonly isDone: boolean
  /** How each call ended that ended in this stream, as fields of its part. */
  readonly outcomes: ReadonlyMap<string, AiSdkOutcome>
  /** Starts the run: the server has accepted the request. */
  start(): readonly AGUIEvent[]
  /**
   * Chunks of unknown types are ignored. `hasMore`: more chunks follow at once. What grows with many of them, such as metadata, is then
   * sent with a later one.
   *
   * @throws CountersignError `malformed-event`, or `protocol-violation` for a chunk about something that was not started
   */
  read(chunk: unknown, hasMore?: boolean): readonly AGUIEvent[]
  /** The stream has ended: returns the last event, if the server had finished. */
  end(): readonly AGUIEvent[]
}

/** Converts a UI message stream of the AI SDK (protocol v1) to AG-UI events. */
export function createAiSdkReader({ threadId, runId, continued }: AiSdkReaderOptions): AiSdkReader {
  let out: AGUIEvent[] = []
  let count = 0
  let results = 0
  let ending: 'open' | 'finished' | 'stopped' | 'failed' = 'open'
  let finishReason: string | undefined
  const emit = (event: AGUIEvent) => {
    out.push(event)
  }
  const message = createStepReader(emit, runId, continued)
  const calls = createCallReader(emit, () => `${runId}/result-${++results}`, message, continued)

  function take(hasMore = false): readonly AGUIEvent[] {
    message.describe(hasMore)
    const events = out
    out = []
    return events
  }

  /** The handler of each type of chunk. */
  const steps: Readonly<Record<string, (chunk: RawChunk) => void>> = {
    start(chunk) {
      message.begin(chunk.messageId)
      message.addMetadata(chunk.messageMetadata)
    },
    'message-metadata': (chunk) => message.addMetadata(chunk.messageMetadata),
    'start-step': message.beginStep,
    'reset-step'() {
      calls.dropStep(message.number)
      message.resetStep()
    },
    'text-start': message.readText,
    'text-delta': message.readText,
    'text-end': message.readText,
    'reasoning-start': message.readReasoning,
    'reasoning-delta': message.readReasoning,
    'reasoning-end': message.readReasoning,
    'source-url': message.takeSource,
    'source-document': message.takeSource,
    file: message.takeOther,
    'reasoning-file': message.takeOther,
    custom: message.takeOther,
    'steering-message': message.takeOther,
    'tool-input-start': calls.readInput,
    'tool-input-delta': calls.readInput,
    'tool-input-available': calls.readInput,
    'tool-input-error': calls.readInput,
    'tool-approval-request': calls.readRequest,
    'tool-approval-response': calls.takeResponse,
    'tool-output-available': calls.readOutput,
    'tool-output-error': calls.readOutput,
    'tool-output-denied': calls.readOutput,
    'data-countersign-result': calls.readDecided,
    error(chunk) {
      ending = 'failed'
      emit({ type: 'RUN_ERROR', message: field(chunk, 'errorText') })
    },
    abort() {
      ending = 'stopped'
    },
    finish(chunk) {
      if (ending === 'open') ending = 'finished'
      finishReason = asString(chunk.finishReason) ?? finishReason
      message.addMetadata(chunk.messageMetadata)
    },
  }

  function apply(chunk: RawChunk): void {
    const { type } = chunk
    if (Object.hasOwn(steps, type)) steps[type]?.(chunk)
    else if (type.startsWith('data-')) message.takeOther(chunk)
  }

  function finish(isStopped: boolean): void {
    const { interrupts, pending } = calls.end(isStopped)
    message.end()
    const metadata =
      finishReason === undefined ? {} : { metadata: { finishReason: finishReason.replaceAll('-', '_') } }
    const run = { type: 'RUN_FINISHED', threadId, runId, ...metadata } as const
    if (isStopped) emit({ ...run, outcome: { type: 'cancelled' } })
    else if (interrupts.length > 0)
      emit({ ...run, outcome: { type: 'interrupt', interrupts: [...interrupts] } })
    else emit({ ...run, outcome: { type: 'success', pendingToolCallIds: [...pending] } })
  }

  return {
    get count() {
      return count
    },
    get isDone() {
      return ending !== 'open'
    },
    outcomes: calls.outcomes,
    start: () => [{ type: 'RUN_STARTED', threadId, runId, protocolVersion: PROTOCOL_VERSION }],
    read(value, hasMore) {
      count++
      // Nothing counts after an error: the SDK's own client stops there.
      if (ending !== 'failed') apply(readChunk(value))
      return take(hasMore)
    },
    end() {
      if (ending === 'finished' || ending === 'stopped') finish(ending === 'stopped')
      return take()
    },
  }
}
