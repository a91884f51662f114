import { createServer } from 'node:http'
import { ChatClient, type ChatClientOptions, fetchServerSentEvents, stream } from '@countersign/client'
import { type AgentOptions, createAgent, type ModelEvent, scriptedModel, tool } from '@countersign/server'
import { toNodeHandler } from '@countersign/server/node'
import { onTestFinished } from 'vitest'
import { z } from 'zod'
import { listening } from './listening.js'
import { strict } from './strict.js'

/** The ways a client reaches our engine. */
export const wires = ['in-process', 'sse'] as const
export type Wire = (typeof wires)[number]

const subject = 'person-1'

/** An agent and a client of it, over a wire. */
export async function connect(
  wire: Wire,
  options: Partial<AgentOptions> & Pick<AgentOptions, 'model'>,
  client: Partial<ChatClientOptions> = {},
) {
  const agent = createAgent({ warn: () => {}, onError: () => {}, ...options })
  const open = async () => {
    if (wire === 'in-process')
      return stream((input, { signal }) => agent.run(input, { signal, context: { subject } }))
    const server = createServer(toNodeHandler(agent, { context: () => ({ subject }) }))
    return fetchServerSentEvents(`http://${await listening(server)}/`)
  }
  const connection = strict(await open())
  const chat = new ChatClient({ connection, ...client })
  onTestFinished(chat.dispose)
  return { chat, agent, connection }
}

/** A mail tool that only remembers; it needs a yes. */
export function mailTool() {
  const sent: string[] = []
  return {
    sent,
    mail: tool({
      name: 'send_email',
      description: 'Sends a mail.',
      input: z.object({ to: z.string() }),
      needsApproval: true,
      allowEdits: true,
      execute: ({ to }) => {
        sent.push(to)
        return { to, state: 'sent' }
      },
    }),
  }
}

export const call = (id: string, name: string, input: unknown): ModelEvent => ({
  type: 'tool-call',
  id,
  name,
  arguments: JSON.stringify(input),
})

/** A model's turn that calls tools. */
export const calls = (...events: ModelEvent[]): ModelEvent[] => [
  ...events,
  { type: 'finish', reason: 'tool_calls' },
]

/** A model's turn that says something. */
export const says = (delta: string): ModelEvent[] => [
  { type: 'text-delta', delta },
  { type: 'finish', reason: 'stop' },
]

export { scriptedModel }

/** The text of the last message. */
export function lastText(chat: ChatClient): string {
  const parts = chat.getSnapshot().messages.at(-1)?.parts ?? []
  return parts.map((part) => (part.type === 'text' ? part.text : '')).join('')
}

/** Every call of the conversation as `name:state`. */
export function states(chat: ChatClient): string[] {
  return chat
    .getSnapshot()
    .messages.flatMap(({ parts }) =>
      parts.flatMap((part) => (part.type === 'tool-call' ? [`${part.name}:${part.state}`] : [])),
    )
}

/** The id of the only request that waits. */
export function pendingId(chat: ChatClient, index = 0): string {
  const id = chat.getSnapshot().pendingApprovals[index]?.approval?.id
  if (id === undefined)
    throw new Error(`no request ${index} waits; there are ${chat.getSnapshot().pendingApprovals.length}`)
  return id
}
