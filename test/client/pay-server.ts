import { stream, toolDefinition } from '@countersign/client'
import { type AgentOptions, createAgent, scriptedModel } from '@countersign/server'
import { z } from 'zod'

// A server whose model pays once, and a network that loses what a test says.

const definition = { name: 'pay', description: 'Pays.', input: z.object({ amount: z.number() }) }
export const pay = toolDefinition({ ...definition, needsApproval: true })
export const payAtOnce = toolDefinition(definition)

const model = () =>
  scriptedModel(({ messages }) =>
    messages.at(-1)?.role === 'user'
      ? [
          { type: 'tool-call', id: 'c1', name: 'pay', arguments: '{"amount":5}' },
          { type: 'finish', reason: 'tool_calls' },
        ]
      : [
          { type: 'text-delta', delta: 'ok' },
          { type: 'finish', reason: 'stop' },
        ],
  )

type Cut = { readonly before?: string; readonly after?: string }

export function payServer(options: Partial<AgentOptions>) {
  const agent = createAgent({ model: model(), tools: [], ...options })
  let lost = 0
  let cut: Cut = {}
  const connection = stream(async function* (input, { signal }) {
    const isLost = lost-- > 0
    const breakOff = () => {
      cut = {}
      throw new Error('the connection was cut')
    }
    for await (const event of agent.run(input, { signal, context: { subject: 'u' } })) {
      if (event.type === cut.before) breakOff()
      if (!isLost) yield event
      if (event.type === cut.after) breakOff()
    }
    if (isLost) throw new Error('the reply was lost')
  })
  return {
    connection,
    /** How many requests from now on lose their reply once the server has carried them out. */
    loseReplies: (count: number) => {
      lost = count
    },
    /** Before or after the next event of this type the stream is cut, once. */
    cutOnce: (at: Cut) => {
      cut = at
    },
  }
}
