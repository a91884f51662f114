import type { AGUIEvent, Interrupt, Message, ResumeEntry, RunAgentInput } from '@countersign/core'
import { prompts } from './our-agent.js'

/** What an agent of another make says to a request, in plain AG-UI: nothing in it is Countersign's. `sent` is what it does. */
export function peerEvents(input: RunAgentInput, sent: string[]): AGUIEvent[] {
  const { threadId, runId, messages, resume = [] } = input
  const last = messages.findLastIndex(({ role }) => role === 'user')
  const turn = messages.slice(last + 1)
  const carriedOut = resume.flatMap((entry) => carryOut(entry, turn, sent))
  const results = [...turn.flatMap(resultOf), ...carriedOut.map(({ content }) => String(content))]
  const step = nextStep(textOf(messages[last]), results)
  const events: AGUIEvent[] = [{ type: 'RUN_STARTED', threadId, runId }, ...carriedOut, ...step.events]
  if (step.failed) return events
  const { interrupts = [] } = step
  const outcome = interrupts.length > 0 ? { outcome: { type: 'interrupt' as const, interrupts } } : {}
  return [...events, { type: 'RUN_FINISHED', threadId, runId, ...outcome }]
}

interface Step {
  readonly events: readonly AGUIEvent[]
  readonly interrupts?: Interrupt[]
  readonly failed?: boolean
}

function nextStep(text: string, results: readonly string[]): Step {
  const done = results.length > 0
  switch (text) {
    case prompts.hello:
      return { events: says('Hello, Ada.') }
    case prompts.weather: {
      const content = JSON.stringify({ city: 'Oslo', degrees: 21 })
      const result = { type: 'TOOL_CALL_RESULT' as const, messageId: 'r1', toolCallId: 'c1', content }
      return { events: [...calls('c1', 'weather', { city: 'Oslo' }), result, ...says(`It is: ${content}`)] }
    }
    case prompts.mail:
      return done ? { events: says(`Done: ${results}`) } : asks(['c1', 'ada'])
    case prompts.two:
      return done ? { events: says(`Done: ${results}`) } : asks(['c1', 'ada'], ['c2', 'bob'])
    case prompts.chain: {
      const next = (
        [
          ['c1', 'ada'],
          ['c2', 'bob'],
        ] as const
      )[results.length]
      return next ? asks(next) : { events: says(`Done: ${results}`) }
    }
    case prompts.where:
      return { events: done ? says(`You are: ${results}`) : calls('c1', 'get_location', {}) }
    case prompts.slow:
      return { events: says(...Array.from({ length: 400 }, () => ' well')) }
    default:
      return { events: [{ type: 'RUN_ERROR', message: 'The model is out of order.' }], failed: true }
  }
}

let said = 0

function says(...deltas: string[]): AGUIEvent[] {
  const messageId = `said-${++said}`
  return [
    { type: 'TEXT_MESSAGE_START', messageId, role: 'assistant' },
    ...deltas.map((delta): AGUIEvent => ({ type: 'TEXT_MESSAGE_CONTENT', messageId, delta })),
    { type: 'TEXT_MESSAGE_END', messageId },
  ]
}

function calls(toolCallId: string, toolCallName: string, input: unknown): AGUIEvent[] {
  return [
    { type: 'TOOL_CALL_START', toolCallId, toolCallName },
    { type: 'TOOL_CALL_ARGS', toolCallId, delta: JSON.stringify(input) },
    { type: 'TOOL_CALL_END', toolCallId },
  ]
}

function asks(...mails: readonly (readonly [id: string, to: string])[]): Step {
  return {
    events: mails.flatMap(([id, to]) => calls(id, 'send_mail', { to })),
    interrupts: mails.map(([id, to]) => ({
      id: `ask-${id}`,
      reason: 'tool_call',
      toolCallId: id,
      message: `Send a mail to ${to}?`,
      responseSchema: {
        type: 'object',
        properties: { approved: { type: 'boolean' }, editedArgs: { type: 'object' } },
        required: ['approved'],
      },
    })),
  }
}

/** AG-UI, interrupts: the answer of a call is told by its result alone. */
function carryOut(
  { interruptId, status, payload }: ResumeEntry,
  turn: readonly Message[],
  sent: string[],
): Extract<AGUIEvent, { type: 'TOOL_CALL_RESULT' }>[] {
  const toolCallId = interruptId.replace('ask-', '')
  const call = turn
    .flatMap((message) => (message.role === 'assistant' ? (message.toolCalls ?? []) : []))
    .find(({ id }) => id === toolCallId)
  if (!call) return []
  const { to } = payload?.editedArgs ?? JSON.parse(call.function.arguments)
  const approved = status === 'resolved' && payload?.approved === true
  if (approved) sent.push(to)
  const content = approved
    ? JSON.stringify({ to, state: 'sent' })
    : `The person said no: ${payload?.reason ?? 'no reason'}`
  return [{ type: 'TOOL_CALL_RESULT', messageId: `result-${toolCallId}`, toolCallId, content }]
}

function resultOf(message: Message): string[] {
  return message.role === 'tool' ? [String(message.content)] : []
}

function textOf(message: Message | undefined): string {
  return message?.role === 'user' && typeof message.content === 'string' ? message.content : ''
}
