import { HttpAgent as HttpAgent0 } from 'ag-ui-client-0'
import { HttpAgent as HttpAgent1 } from 'ag-ui-client-1'
import { expect, test } from 'vitest'
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
