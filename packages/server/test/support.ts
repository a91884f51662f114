import type { AGUIEvent, Message, ResumeEntry, RunAgentInput } from '@countersign/core'
import { createEventReader } from '@countersign/core/ag-ui'
import {
  type Agent,
  type AgentOptions,
  createAgent,
  type ModelEvent,
  memoryLedger,
  type RunOptions,
  type ScriptedModel,
  type ScriptedTurn,
  scriptedModel,
  tool,
} from '@countersign/server'
import { expect } from 'vitest'
import * as z from 'zod'

export const SECRET = 'countersign-test-secret-0123456789abcdef'

export const say = (text: string): ModelEvent[] => [
  { type: 'text-delta', delta: text },
  { type: 'finish', reason: 'stop' },
]

/** The model calls tools: `[id, name, arguments]` each. */
export const call = (
  ...calls: readonly (readonly [id: string, name: string, input: unknown])[]
): ModelEvent[] => [
  ...calls.map(
    ([id, name, input]): ModelEvent => ({
      type: 'tool-call',
      id,
      name,
      arguments: typeof input === 'string' ? input : JSON.stringify(input),
    }),
  ),
  { type: 'finish', reason: 'tool_calls' },
]

/** A tool that counts its runs. */
export function counted<const Name extends string>(
  name: Name,
  more: Partial<
    Omit<Parameters<typeof tool<Name, z.ZodType<Record<string, unknown>>, unknown>>[0], 'name'>
  > = {},
) {
  const runs: unknown[] = []
  const counting = tool({
    name,
    description: `The tool ${name}`,
    input: z.looseObject({}),
    ...more,
    execute: async (input, context) => {
      runs.push(input)
      return more.execute === undefined ? { done: name } : more.execute(input, context)
    },
  })
  return { tool: counting, runs }
}

export interface TestAgent {
  readonly agent: Agent
  readonly model: ScriptedModel
}

export function testAgent(
  turns:
    | readonly ScriptedTurn[]
    | ((...args: Parameters<Extract<ScriptedTurn, (...args: never[]) => unknown>>) => ModelEvent[]),
  options: Partial<AgentOptions> = {},
): TestAgent {
  const model = scriptedModel(turns)
  const approvals = { secret: SECRET, ledger: memoryLedger({ now: options.now }), ...options.approvals }
  return { model, agent: createAgent({ model, warn: () => {}, onError: () => {}, ...options, approvals }) }
}

let runs = 0

export function input(messages: readonly Message[], more: Partial<RunAgentInput> = {}): RunAgentInput {
  return {
    threadId: 'thread',
    runId: `run_${++runs}`,
    protocolVersion: '1.0',
    messages: [...messages],
    tools: [],
    context: [],
    state: {},
    forwardedProps: {},
    ...more,
  }
}

export const user = (content: string, id = `user_${++runs}`): Message => ({ id, role: 'user', content })

/** Runs to the end through the strict reader of core. */
export async function collect(
  agent: Agent,
  given: RunAgentInput,
  options?: RunOptions,
): Promise<readonly AGUIEvent[]> {
  const reader = createEventReader({
    threadId: given.threadId,
    runId: given.runId,
    onWarning: ({ message }) => expect.fail(message),
  })
  const events: AGUIEvent[] = []
  for await (const event of agent.run(given, options)) {
    reader.push(JSON.parse(JSON.stringify(event)), () => {})
    events.push(event)
  }
  reader.end()
  return events
}

/** What a client that folds events keeps of a run: the history with the run's own messages. */
export function fold(history: readonly Message[], events: readonly AGUIEvent[]): Message[] {
  const messages = structuredClone([...history]) as Message[]
  const assistant = (id: string) => {
    const known = messages.find((message) => message.id === id)
    if (known?.role === 'assistant') return known
    const made: Extract<Message, { role: 'assistant' }> = { id, role: 'assistant' }
    messages.push(made)
    return made
  }
  const findCall = (id: string) =>
    messages
      .flatMap((message) => (message.role === 'assistant' ? (message.toolCalls ?? []) : []))
      .findLast((one) => one.id === id)
  for (const event of events) {
    if (event.type === 'TEXT_MESSAGE_CONTENT') {
      const message = assistant(event.messageId)
      message.content = (message.content ?? '') + event.delta
    }
    if (event.type === 'TOOL_CALL_START') {
      const message = assistant(event.parentMessageId ?? event.toolCallId)
      const { toolCallId: id, toolCallName: name } = event
      message.toolCalls = [
        ...(message.toolCalls ?? []),
        { id, type: 'function', function: { name, arguments: '' } },
      ]
    }
    const found =
      'toolCallId' in event && typeof event.toolCallId === 'string' ? findCall(event.toolCallId) : undefined
    if (event.type === 'TOOL_CALL_ARGS' && found) found.function.arguments += event.delta
    if ((event.type === 'TOOL_CALL_START' || event.type === 'TOOL_CALL_END') && found && event.metadata)
      found.metadata = { ...found.metadata, ...event.metadata }
    if (event.type === 'TOOL_CALL_RESULT') {
      const { messageId: id, toolCallId, content, metadata } = event
      messages.push({ id, role: 'tool', toolCallId, content, ...(metadata && { metadata }) })
    }
  }
  return messages
}

export interface Asked {
  readonly toolCallId: string
  readonly toolName: string
  readonly input: unknown
  readonly approval: { readonly id: string; readonly token: string; readonly [key: string]: unknown }
}

export function requests(events: readonly AGUIEvent[]): Asked[] {
  return events.flatMap((event) =>
    event.type === 'CUSTOM' && event.name === 'approval-requested' ? [event.value as Asked] : [],
  )
}

export function refusals(
  events: readonly AGUIEvent[],
): { approvalId: string; code: string; message: string; toolCallId?: string }[] {
  return events.flatMap((event) =>
    event.type === 'CUSTOM' && event.name === 'approval-refused' ? [event.value] : [],
  )
}

export function results(events: readonly AGUIEvent[]) {
  return events.flatMap((event) =>
    event.type === 'TOOL_CALL_RESULT'
      ? [
          {
            id: event.toolCallId,
            content: contentOf(String(event.content)),
            own: withoutDecided(event.metadata?.countersign),
          },
        ]
      : [],
  )
}

/** JSON, or a text as it is. */
function contentOf(text: string) {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

/** What a result says of itself. Who decided and when has tests of its own. */
function withoutDecided(own: unknown): Record<string, unknown> | undefined {
  const { decided: _, ...rest }: Record<string, unknown> = Object(own)
  return Object.keys(rest).length > 0 ? rest : undefined
}

export const types = (events: readonly AGUIEvent[]) =>
  events.map((event) => (event.type === 'CUSTOM' ? `CUSTOM ${event.name}` : event.type))

export const last = (events: readonly AGUIEvent[]) => {
  const event = events.at(-1)
  if (event === undefined) throw new Error('no events')
  return event
}

/** The `resume` entry a Countersign client sends. */
export function answer(
  asked: Asked,
  payload: Record<string, unknown>,
  token: string | undefined = asked.approval.token,
): ResumeEntry {
  return {
    interruptId: asked.approval.id,
    status: 'resolved',
    payload,
    ...(token !== undefined && { metadata: { countersign: { token } } }),
  }
}

/** A first run that asks for `calls`, and what is needed to answer. */
export async function ask(agent: Agent, given: Partial<RunAgentInput> = {}, options?: RunOptions) {
  const question = [user('go')]
  const events = await collect(agent, input(question, given), options)
  const history = fold(question, events)
  const asked = requests(events)
  const [first] = asked
  if (first === undefined) throw new Error(`nothing was asked: ${types(events).join(' ')}`)
  return { events, history, asked, first }
}
