import type { Connection } from '@countersign/client'
import {
  type AGUIEvent,
  CountersignError,
  type EventOf,
  type Message,
  type RunAgentInput,
} from '@countersign/core'
import { createEventReader } from '@countersign/core/ag-ui'

/** The request that a stream responds to. Omitted fields are not compared. */
export type VerifiedRequest = Partial<Pick<RunAgentInput, 'threadId' | 'runId' | 'messages'>>

/** Verifies one stream of an agent, event by event. Unusable after it has thrown. */
export interface RunVerifier {
  /** @throws CountersignError `malformed-event` or `protocol-violation`, naming the event and the rule. */
  push(event: unknown): void
  /** The stream has ended. @throws CountersignError `truncated-stream` unless its last run has ended too. */
  end(): void
}

/** Fields that identify something and therefore must not be empty. */
const names = ['threadId', 'runId', 'messageId', 'toolCallId', 'toolCallName', 'stepName', 'subagentRunId']

/**
 * A strict verification of what an agent sends. In addition to what a client rejects (fields, order, truncation, ids
 * of run, thread and interrupts), these are violations: anything that AG-UI 1.0 does not describe, `null` for an
 * absent field, an empty id, a value without a JSON form; a result for a call that is unknown, still open or already
 * has one, or with the id of another message; an interrupt for a call that is unknown or has its result, or with the
 * reason `tool_call` but without a call; `pendingToolCallIds` that do not list exactly the calls without a result.
 */
export function createRunVerifier(request: VerifiedRequest = {}): RunVerifier {
  const { threadId, runId, messages = [] } = request
  const calls = createCallBook(messages)
  const reader = createEventReader({
    threadId,
    runId,
    onWarning: ({ message, event }) => fail(event, message),
  })
  return {
    push(event) {
      checkForm(event)
      reader.push(event, calls.follow)
    },
    end: () => reader.end(),
  }
}

/**
 * Verifies the complete stream of events that responds to a request.
 *
 * @example verifyRun(await Array.fromAsync(agent.run(input)), input)
 * @throws CountersignError as {@link RunVerifier} does.
 */
export function verifyRun(events: Iterable<unknown>, request?: VerifiedRequest): void {
  const verifier = createRunVerifier(request)
  for (const event of events) verifier.push(event)
  verifier.end()
}

/** Passes the events through and verifies them. If the reader stops early, only what it read is verified. */
export async function* verifyEvents<Batch>(
  events: AsyncIterable<Batch>,
  request?: VerifiedRequest,
): AsyncGenerator<Batch> {
  const verifier = createRunVerifier(request)
  for await (const batch of events) {
    for (const event of Array.isArray(batch) ? batch : [batch]) verifier.push(event)
    yield batch
  }
  verifier.end()
}

export interface VerifiedOptions {
  /** Also called for a violation, before the stream breaks: a client reports it as a failed run, which a test may not check. */
  readonly onBreach?: ((error: unknown) => void) | undefined
}

/**
 * A connection whose runs are all verified, except for the end of a stopped run, and runs that are rejoined
 * in the middle.
 *
 * @example new ChatClient({ connection: verified(fetchServerSentEvents(url)) })
 */
export function verified(connection: Connection, { onBreach }: VerifiedOptions = {}): Connection {
  return {
    ...connection,
    async *connect(input, options) {
      const verifier = createRunVerifier(input)
      const check = (step: () => void) => {
        try {
          step()
        } catch (error) {
          onBreach?.(error)
          throw error
        }
      }
      for await (const batch of connection.connect(input, options)) {
        for (const event of Array.isArray(batch) ? batch : [batch]) check(() => verifier.push(event))
        yield batch
      }
      if (!options.signal.aborted) check(verifier.end)
    },
  }
}

function fail(event: unknown, rule: string): never {
  const type = typeof event === 'object' && event !== null && 'type' in event ? String(event.type) : 'event'
  throw new CountersignError('protocol-violation', `${type}: ${rule}`, { where: type, rule })
}

function checkForm(event: unknown): void {
  const fields: Readonly<Record<string, unknown>> = { ...(event as object) }
  for (const name of names) if (fields[name] === '') fail(event, `${name} is empty`)
  // Clients tolerate this for the sake of existing servers.
  if (fields.type === 'RUN_FINISHED' && 'finishReason' in fields)
    fail(event, 'finishReason belongs into metadata')
  try {
    JSON.stringify(event)
  } catch (error) {
    fail(event, `it has no JSON form: ${error}`)
  }
}

type CallState = 'open' | 'unresolved' | 'resolved'

/** Tracks the outcome of each call: in the history of the request, and in the events that reach a client. */
function createCallBook(history: readonly Message[]) {
  const calls = new Map<string, CallState>()
  /** Calls of the current run, in the order in which they started. */
  let started: string[] = []
  let ids = new Set<string>()

  const read = (messages: readonly Message[]) => {
    for (const message of messages) {
      ids.add(message.id)
      if (message.role === 'assistant')
        for (const { id } of message.toolCalls ?? []) calls.set(id, 'unresolved')
      if (message.role === 'tool') calls.set(message.toolCallId, 'resolved')
    }
  }
  read(history)

  function resolve(event: EventOf<'TOOL_CALL_RESULT'>): void {
    const { toolCallId, messageId } = event
    const state = calls.get(toolCallId)
    if (state === undefined) fail(event, `there is no call ${toolCallId}`)
    if (state === 'open') fail(event, `the call ${toolCallId} is not complete yet`)
    if (state === 'resolved') fail(event, `the call ${toolCallId} has its result`)
    if (ids.has(messageId)) fail(event, `another message has the id ${messageId}`)
    ids.add(messageId)
    calls.set(toolCallId, 'resolved')
  }

  function finish(event: EventOf<'RUN_FINISHED'>): void {
    const { outcome } = event
    if (outcome?.type === 'interrupt') {
      for (const { id, toolCallId, reason } of outcome.interrupts) {
        if (toolCallId !== undefined && calls.get(toolCallId) !== 'unresolved')
          fail(event, `the interrupt ${id} is about ${toolCallId}, which is no call that waits`)
        if (toolCallId === undefined && reason === 'tool_call')
          fail(event, `the interrupt ${id} does not say which call it is about`)
      }
    }
    if (outcome?.type === 'success' && outcome.pendingToolCallIds)
      checkPending(event, outcome.pendingToolCallIds)
  }

  function checkPending(event: EventOf<'RUN_FINISHED'>, pending: readonly string[]): void {
    const waiting = started.filter((id) => calls.get(id) === 'unresolved')
    const missing = waiting.filter((id) => !pending.includes(id))
    if (missing.length > 0) fail(event, `pendingToolCallIds lacks ${missing}`)
    if (new Set(pending).size < pending.length) fail(event, 'pendingToolCallIds names a call twice')
    for (const id of pending)
      if (calls.get(id) !== 'unresolved') fail(event, `pendingToolCallIds has ${id}, which does not wait`)
  }

  /** Takes an event that has passed the check of the order. */
  function follow(event: AGUIEvent): void {
    switch (event.type) {
      case 'RUN_STARTED':
        started = []
        read(event.input?.messages ?? [])
        return
      case 'TEXT_MESSAGE_START':
      case 'REASONING_MESSAGE_START':
        ids.add(event.messageId)
        return
      case 'TOOL_CALL_START':
        calls.set(event.toolCallId, 'open')
        started.push(event.toolCallId)
        return
      case 'TOOL_CALL_END':
        calls.set(event.toolCallId, 'unresolved')
        return
      case 'TOOL_CALL_RESULT':
        resolve(event)
        return
      case 'MESSAGES_SNAPSHOT':
        ids = new Set()
        calls.clear()
        read(event.messages)
        return
      case 'RUN_FINISHED':
        finish(event)
        return
      default:
    }
  }

  return { follow }
}
