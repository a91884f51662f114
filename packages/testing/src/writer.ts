import type { AGUIEvent, Interrupt, RunAgentInput } from '@countersign/core'
import type { AskOptions, EventStep, FailedOutcome, FinishOptions } from './steps.js'

/** An event to be sent; a script may send events that AG-UI does not know. */
export type ScriptedEvent = AGUIEvent | { readonly type: string; readonly [key: string]: unknown }

/** What a server remembers across its runs, so that later runs can refer to earlier calls. */
export interface Book {
  readonly calls: Map<string, { name: string; args: string }>
  readonly approvals: Map<string, string>
  messages: number
}

export function createBook(): Book {
  return { calls: new Map(), approvals: new Map(), messages: 0 }
}

/**
 * Writes one run: the events of its steps in a legal order, with ids. It starts with RUN_STARTED, unless the
 * first event is an explicit RUN_STARTED or RUN_ERROR. Text and calls share a message until a result follows,
 * as in the stream of an agent that calls its model again after each batch of results.
 */
export function createWriter(input: RunAgentInput, book: Book): (step: EventStep) => ScriptedEvent[] {
  const { threadId, runId } = input
  const interrupts: Interrupt[] = []
  /** Calls of this run without a result and without an approval request. */
  const unresolved = new Set<string>()
  readHistory(input, book)
  let begun = false
  let message: string | undefined

  function write(step: EventStep): ScriptedEvent[] {
    const events = expand(step)
    const first = step.step === 'event' ? step.event.type : undefined
    const bare = begun || step.step === 'started' || first === 'RUN_STARTED' || first === 'RUN_ERROR'
    begun = true
    return bare ? events : [start(), ...events]
  }

  const start = (): AGUIEvent => ({ type: 'RUN_STARTED', threadId, runId, protocolVersion: '1.0' })

  function expand(step: EventStep): ScriptedEvent[] {
    switch (step.step) {
      case 'started':
        return [start()]
      case 'text':
        return [textStart(), ...step.deltas.map(textDelta), textEnd()]
      case 'text-start':
        return [textStart()]
      case 'text-delta':
        return [textDelta(step.delta)]
      case 'text-end':
        return [textEnd()]
      case 'reasoning':
        return reasoning(step.text)
      case 'call':
        return [callStart(step.id, step.name), callArgs(step.id, JSON.stringify(step.args)), callEnd(step.id)]
      case 'call-start':
        return [callStart(step.id, step.name)]
      case 'call-args':
        return [callArgs(step.id, step.delta)]
      case 'call-end':
        return [callEnd(step.id)]
      case 'ask':
        return ask(step.approvalId, step.callId, step.options)
      case 'result':
        return [toolResult(step.callId, step.output)]
      case 'failure':
        return [toolFailure(step.callId, step.outcome, step.reason)]
      case 'refuse':
        return [refuse(step.approvalId, step.code, step.message)]
      case 'client-ready':
        return [clientReady(step.callId, step.input)]
      case 'resolve':
        return resolve()
      case 'event':
        return [step.event]
      case 'finish':
        return [finish(step.options)]
      case 'error':
        return [
          { type: 'RUN_ERROR', message: step.message, ...(step.code !== undefined && { code: step.code }) },
        ]
      default:
        return step satisfies never
    }
  }

  function messageId(): string {
    message ??= `m${++book.messages}`
    return message
  }

  const textStart = (): AGUIEvent => ({
    type: 'TEXT_MESSAGE_START',
    messageId: messageId(),
    role: 'assistant',
  })
  const textDelta = (delta: string): AGUIEvent => ({
    type: 'TEXT_MESSAGE_CONTENT',
    messageId: messageId(),
    delta,
  })
  const textEnd = (): AGUIEvent => ({ type: 'TEXT_MESSAGE_END', messageId: messageId() })

  function reasoning(delta: string): AGUIEvent[] {
    const own = { messageId: `r${++book.messages}` }
    return [
      { type: 'REASONING_START', ...own },
      { type: 'REASONING_MESSAGE_START', ...own, role: 'reasoning' },
      { type: 'REASONING_MESSAGE_CONTENT', ...own, delta },
      { type: 'REASONING_MESSAGE_END', ...own },
      { type: 'REASONING_END', ...own },
    ]
  }

  function callStart(id: string, name: string): AGUIEvent {
    book.calls.set(id, { name, args: '' })
    unresolved.add(id)
    return { type: 'TOOL_CALL_START', toolCallId: id, toolCallName: name, parentMessageId: messageId() }
  }

  function callArgs(id: string, delta: string): AGUIEvent {
    const known = book.calls.get(id)
    if (known) known.args += delta
    return { type: 'TOOL_CALL_ARGS', toolCallId: id, delta }
  }

  const callEnd = (id: string): AGUIEvent => ({ type: 'TOOL_CALL_END', toolCallId: id })

  function ask(
    id: string,
    toolCallId: string,
    { input, token, by = 'both', ...more }: AskOptions,
  ): AGUIEvent[] {
    book.approvals.set(id, toolCallId)
    unresolved.delete(toolCallId)
    const toolName = book.calls.get(toolCallId)?.name ?? 'unknown'
    const secret = token === undefined ? `token-${id}` : token
    const approval = {
      id,
      needsApproval: true,
      options: ['deny', 'once'],
      ...more,
      ...(secret !== null && { token: secret }),
    }
    const value = { toolCallId, toolName, input: input ?? argsOf(toolCallId), approval }
    if (by !== 'event') {
      interrupts.push({
        id,
        reason: 'tool_call',
        toolCallId,
        ...(more.message !== undefined && { message: more.message }),
        ...(more.expiresAt !== undefined && { expiresAt: more.expiresAt }),
        metadata: { countersign: value },
      })
    }
    return by === 'interrupt' ? [] : [{ type: 'CUSTOM', name: 'approval-requested', value }]
  }

  function argsOf(callId: string): unknown {
    return JSON.parse(book.calls.get(callId)?.args || '{}')
  }

  function toolMessage(toolCallId: string, content: unknown, outcome?: FailedOutcome): AGUIEvent {
    unresolved.delete(toolCallId)
    message = undefined
    return {
      type: 'TOOL_CALL_RESULT',
      messageId: `t${++book.messages}`,
      toolCallId,
      content: JSON.stringify(content) ?? 'null',
      ...(outcome && { metadata: { countersign: { outcome } } }),
    }
  }

  const toolResult = (callId: string, output: unknown) => toolMessage(callId, output)

  function toolFailure(callId: string, outcome: FailedOutcome, reason: string | undefined): AGUIEvent {
    const type = `execution-${outcome}`
    return toolMessage(callId, { type, ...(reason !== undefined && { reason }) }, outcome)
  }

  function refuse(approvalId: string, code: string, words = 'The answer was not accepted.'): AGUIEvent {
    const toolCallId = book.approvals.get(approvalId) ?? 'unknown'
    return {
      type: 'CUSTOM',
      name: 'approval-refused',
      value: { approvalId, toolCallId, code, message: words },
    }
  }

  function clientReady(toolCallId: string, given: unknown): AGUIEvent {
    unresolved.add(toolCallId)
    const toolName = book.calls.get(toolCallId)?.name ?? 'unknown'
    return {
      type: 'CUSTOM',
      name: 'client-tool-ready',
      value: { toolCallId, toolName, input: given ?? argsOf(toolCallId) },
    }
  }

  function resolve(): AGUIEvent[] {
    return (input.resume ?? []).flatMap(({ interruptId, status, payload }) => {
      const callId = book.approvals.get(interruptId)
      if (callId === undefined) return []
      if (status === 'cancelled') return [toolFailure(callId, 'cancelled', undefined)]
      return [
        payload?.approved === true
          ? toolResult(callId, 'done')
          : toolFailure(callId, 'denied', payload?.reason),
      ]
    })
  }

  function finish({
    reason,
    interrupts: others = [],
    pending = [...unresolved],
    ...more
  }: FinishOptions): AGUIEvent {
    const open = [...interrupts, ...others]
    const interrupted = open.length > 0 && { outcome: { type: 'interrupt' as const, interrupts: open } }
    const left = pending.length > 0 && {
      outcome: { type: 'success' as const, pendingToolCallIds: [...pending] },
    }
    return {
      type: 'RUN_FINISHED',
      threadId,
      runId,
      ...(interrupted || left),
      ...more,
      metadata: { finishReason: reason ?? (interrupted || left ? 'tool_calls' : 'stop') },
    }
  }

  return write
}

/** Reads calls of a conversation that began elsewhere: before a reload, or with another server. */
function readHistory({ messages }: RunAgentInput, { calls, approvals }: Book): void {
  for (const message of messages) {
    if (message.role !== 'assistant') continue
    for (const { id, function: called, metadata } of message.toolCalls ?? []) {
      if (!calls.has(id)) calls.set(id, { name: called.name, args: called.arguments })
      const approvalId: unknown = metadata?.['countersign']?.approval?.id
      if (typeof approvalId === 'string') approvals.set(approvalId, id)
    }
  }
}
