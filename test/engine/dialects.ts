import { type Connection, stream, withApprovalTool } from '@countersign/client'
import type { AGUIEvent, Message, RunAgentInput, ToolCall } from '@countersign/core'
import type { Agent } from '@countersign/server'

const context = { subject: 'person-1' }

/** The same question in one of its forms only, as a server would send it that knows no other. */
export type Form = (event: AGUIEvent) => readonly AGUIEvent[]

const isApprovalCall = (id: unknown) => String(id).startsWith('approval_')

export const onlyEvent: Form = (event) => {
  if (event.type === 'TOOL_CALL_END') return [withoutMetadata(event)]
  if (event.type !== 'RUN_FINISHED' || event.outcome?.type !== 'interrupt') return [event]
  return [{ ...event, outcome: { type: 'success' } }]
}

export const onlyInterrupt: Form = (event) => {
  if (event.type === 'CUSTOM' && event.name === 'approval-requested') return []
  return event.type === 'TOOL_CALL_END' ? [withoutMetadata(event)] : [event]
}

export const onlyClientTool: Form = (event) =>
  event.type === 'CUSTOM' && event.name === 'approval-requested' ? [] : onlyEvent(event)

function withoutMetadata<Event extends AGUIEvent & { metadata?: unknown }>(event: Event): Event {
  const { metadata: _, ...rest } = event
  return rest as Event
}

/** A connection to the agent whose events take that form, and whose requests are changed on their way. */
export function through(agent: Agent, form: Form, change = (input: RunAgentInput) => input): Connection {
  return stream(async function* (input, { signal }) {
    for await (const event of agent.run(change(input), { signal, context })) yield* form(event)
  })
}

/** A client that knows only client tools: what it is asked is a call, and what it answers is the call's result. */
export function toolDialect(agent: Agent): Connection {
  const questions = new Map<string, ToolCall>()
  const remember: Form = (event) => {
    if (event.type === 'TOOL_CALL_START' && event.toolCallName === 'client.requestApproval') {
      const { toolCallId: id, toolCallName: name } = event
      questions.set(id, { id, type: 'function', function: { name, arguments: '' } })
    }
    const asked = 'toolCallId' in event ? questions.get(String(event.toolCallId)) : undefined
    if (event.type === 'TOOL_CALL_ARGS' && asked) asked.function.arguments += event.delta
    return onlyClientTool(event)
  }
  const say = ({ resume = [], messages, ...input }: RunAgentInput): RunAgentInput => ({
    ...input,
    messages: messages.flatMap((message): Message[] => {
      if (message.role !== 'assistant') return [message]
      const calls = message.toolCalls?.map(({ metadata: _, ...call }) => call) ?? []
      const answers = resume.flatMap(({ interruptId, payload }) => {
        const question = questions.get(interruptId)
        const about = question && JSON.parse(question.function.arguments).toolCallId
        return question && calls.some(({ id }) => id === about) ? [{ question, payload }] : []
      })
      const results = answers.map(({ question, payload }): Message => {
        const { approved, ...said } = payload as { approved: boolean }
        const content = JSON.stringify({ decision: approved ? 'approve' : 'deny', ...said })
        return { id: `decision-${question.id}`, role: 'tool', toolCallId: question.id, content }
      })
      const { toolCalls: _, metadata: __, ...rest } = message
      if (calls.length === 0) return [message]
      return [{ ...rest, toolCalls: [...calls, ...answers.map(({ question }) => question)] }, ...results]
    }),
  })
  return withApprovalTool(through(agent, remember, say))
}

export function isProjected(event: AGUIEvent): boolean {
  return event.type.startsWith('TOOL_CALL_') && 'toolCallId' in event && isApprovalCall(event.toolCallId)
}
