import { createServer } from 'node:http'
import { ChatClient, type ChatClientOptions, fetchServerSentEvents } from '@countersign/client'
import { checkResponse } from '@countersign/client/response-schema'
import { clientTool } from '@countersign/core'
import { tanstack } from '@countersign/tanstack'
import { until } from '@countersign/testing'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { listening } from '../engine/listening.js'
import { ourClient, type PeerServer } from './our-client.js'
import { serveTanstack, tanstackPrompts, tanstackRoute } from './tanstack-route.js'

async function openTanstack(): Promise<PeerServer> {
  const route = tanstackRoute()
  const url = `http://${await listening(createServer(serveTanstack(route)))}/`
  const options = { connection: fetchServerSentEvents(url), compat: tanstack() }
  return { options, sent: route.sent, requests: route.requests }
}

ourClient('our client on a TanStack chat() route (@tanstack/ai 0.58.0)', openTanstack)

async function openChat(options: Partial<ChatClientOptions> = {}) {
  const server = await openTanstack()
  const warnings: string[] = []
  const onWarning = (message: string) => warnings.push(message)
  const client = new ChatClient({ ...server.options, ...options, onWarning })
  onTestFinished(client.dispose)
  const said = () =>
    client
      .getSnapshot()
      .messages.flatMap(({ role, parts }) =>
        role === 'assistant' ? parts.map((part) => (part.type === 'text' ? part.text : '')) : [],
      )
      .join('')
  return { client, server, said, warnings }
}

test('a client tool of a TanStack route that needs approval runs once the route has handed it out', async () => {
  let ran = 0
  const execute = () => ({ place: `Oslo ${++ran}` })
  const tool = clientTool({ name: 'locate_exactly', description: 'Where.', input: z.object({}), execute })
  const { client, server, said } = await openChat({ tools: [tool] })
  await client.sendMessage(tanstackPrompts.exactly)
  expect(ran).toBe(0)
  const [asked] = client.getSnapshot().pendingApprovals
  await client.addToolApprovalResponse({ id: asked?.approval?.id ?? '', approved: true })
  await until(client, ({ status }) => status === 'ready' && said().includes('You are'))
  expect(said()).toContain('Oslo 1')
  expect(ran).toBe(1)
  expect(server.requests()).toBe(3)
})

test('an interrupt of a TanStack route that concerns no tool is answered by its schema', async () => {
  const { client, said, warnings } = await openChat({ checkResponse })
  await client.sendMessage(tanstackPrompts.folder)
  const [interrupt] = client.getSnapshot().interrupts
  expect(interrupt).toMatchObject({ message: 'Which folder?', responseSchema: { required: ['folder'] } })
  const id = interrupt?.id ?? ''
  expect(await client.respondToInterrupt({ id, payload: { folder: 1 } })).toMatchObject({ status: 'refused' })
  expect(await client.respondToInterrupt({ id, payload: { folder: 'logs' } })).toEqual({ status: 'sent' })
  expect(said()).toBe('It goes to logs.')
  expect(warnings).toEqual([])
})
