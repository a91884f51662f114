import { createAgent, handleChat, type ModelEvent, scriptedModel, tool } from '@countersign/server'
import { HttpAgent as HttpAgent0 } from 'ag-ui-client-0'
import { HttpAgent as HttpAgent1 } from 'ag-ui-client-1'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { serveFetch } from './fetch-server.js'
import { type AnyHttpAgent, httpAgentClient, type Kept } from './http-agent.js'
import { openAgent, prompts } from './our-agent.js'
import { theirClient } from './their-client.js'

function create1(url: string, { pendingInterrupts = [], ...kept }: Kept): AnyHttpAgent {
  const agent: AnyHttpAgent = new HttpAgent1({ url, ...(kept as object) })
  agent.pendingInterrupts = pendingInterrupts
  return agent
}

function create0(url: string, { pendingInterrupts = [], ...kept }: Kept): AnyHttpAgent {
  const agent: AnyHttpAgent = new HttpAgent0({ url, ...(kept as object) })
  agent.pendingInterrupts = pendingInterrupts
  return agent
}

theirClient('HttpAgent 1.0.0 on our server', async (options) => httpAgentClient(create1, options))
theirClient('HttpAgent 0.0.59 on our server', async (options) => httpAgentClient(create0, options))

test('the version of a peer is what its request says, and a 0.x peer says none', async () => {
  for (const [create, version] of [
    [create1, '1.0'],
    [create0, undefined],
  ] as const) {
    const agent = await openAgent()
    const client = httpAgentClient(create, { url: agent.url, locate: () => null })
    await client.say(prompts.hello)
    expect(agent.requests[0]?.protocolVersion).toBe(version)
  }
})

test.each([
  ['1.0.0', HttpAgent1],
  ['0.0.59', HttpAgent0],
] as const)(
  'T31 T32 HttpAgent %s shows data parts as activities, and a structured reply as readable text',
  async (_, HttpAgent) => {
    const write = tool({
      name: 'write',
      description: 'Writes.',
      input: z.object({}),
      async execute(_, { write }) {
        await write({ type: 'data', id: 'chart', name: 'chart', data: { points: [1] } })
        await write({ type: 'data', id: 'chart', name: 'chart', data: { points: [1, 2] } })
        await write({ type: 'source', id: 's1', url: 'https://example.org/a' })
        await write({ type: 'metadata', metadata: { cost: 3 } })
        return 'ok'
      },
    })
    const calls: ModelEvent[] = [
      { type: 'tool-call', id: 'c1', name: 'write', arguments: '{}' },
      { type: 'finish', reason: 'tool_calls' },
    ]
    const says: ModelEvent[] = [
      { type: 'text-delta', delta: '{"city":' },
      { type: 'text-delta', delta: '"Oslo"}' },
      { type: 'finish', reason: 'stop' },
    ]
    const model = scriptedModel([calls, says])
    const agent = createAgent({ model, tools: [write], output: z.object({ city: z.string() }) })
    const url = await serveFetch((request) => handleChat(agent, request))
    const client = new HttpAgent({ url, threadId: 't' })
    client.addMessage({ id: 'u1', role: 'user', content: 'go' })
    const { result } = await client.runAgent()
    expect(result).toEqual({ city: 'Oslo' })
    expect(client.messages).toMatchObject([
      { role: 'user' },
      { role: 'assistant', toolCalls: [{ id: 'c1' }] },
      { role: 'tool', toolCallId: 'c1' },
      { id: 'chart', role: 'activity', activityType: 'chart', content: { points: [1, 2] } },
      { role: 'assistant', content: '{"city":"Oslo"}' },
    ])
  },
)
