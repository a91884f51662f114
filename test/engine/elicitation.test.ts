import { createServer } from 'node:http'
import { join } from 'node:path'
import { ChatClient, fetchServerSentEvents, postAnswers } from '@countersign/client'
import { checkResponse } from '@countersign/client/response-schema'
import type { Interrupt, ResumeEntry } from '@countersign/core'
import { mcpTools } from '@countersign/mcp'
import { createAgent, scriptedModel } from '@countersign/server'
import { toNodeAnswerHandler, toNodeHandler } from '@countersign/server/node'
import { until } from '@countersign/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { afterwards, scriptOf, workspace } from '../../packages/mcp/test/support.js'
import { call, calls, says } from './engine.js'
import { listening } from './listening.js'
import { ways } from './wires.js'

/** A real MCP server asks in mid-call; the question goes to the person of the run over every way there is, and the answer back. */

const script = await scriptOf('packages/mcp/test/odd-server.process.ts')

/** An agent whose model has the server ask once, and then asks for approval of the same. */
async function agentThatAsks() {
  const source = { command: process.execPath, args: [script, join(await workspace(), 'log')] }
  const mcp = await mcpTools(source, { server: 'odd', trustAnnotations: ['ask'] })
  afterwards(mcp.dispose)
  const model = scriptedModel([calls(call('c1', 'mcp__odd__ask', {})), says('Thank you.')])
  const secret = 'countersign-test-secret-0123456789abcdef'
  return createAgent({ model, tools: mcp.tools, approvals: { secret }, warn: () => {}, onError: () => {} })
}

/** What the server made of the answer, as the chat shows it. */
function told(client: ChatClient): unknown {
  const parts = client.getSnapshot().messages.flatMap((message) => message.parts)
  const output = parts.flatMap((part) => (part.type === 'tool-call' ? [part.output] : []))[0]
  return JSON.parse(Object(output).content[0].text)
}

const asked = async (client: ChatClient): Promise<Interrupt> => {
  await until(client, ({ interrupts }) => interrupts.length === 1)
  return client.getSnapshot().interrupts[0] ?? expect.fail('nothing is asked')
}

async function open(connect: Way) {
  const client = new ChatClient({ connection: await connect(await agentThatAsks()), checkResponse })
  onTestFinished(client.dispose)
  return { client, run: client.sendMessage('Paint it') }
}

type Way = (typeof ways)[string]
const isLive = ([name]: readonly [string, Way]) => name.endsWith('live')
const all = Object.entries(ways)

describe.each(all.filter(isLive))('%s', (_, connect) => {
  test('a question of an MCP server is answered in the open run', async () => {
    const { client, run } = await open(connect)
    const question = await asked(client)
    expect(question).toMatchObject({
      reason: 'input_required',
      message: 'The MCP server odd asks, and gets your answer: "Which colour?"',
      responseSchema: { properties: { colour: { enum: ['red', 'blue'] } } },
    })
    expect(client.getSnapshot().pendingApprovals).toEqual([])
    expect(await client.respondToInterrupt({ id: question.id, payload: { colour: 'green' } })).toMatchObject({
      status: 'refused',
    })
    await client.respondToInterrupt({ id: question.id, payload: { colour: 'red' } })
    expect(await run).toEqual({ status: 'sent' })
    expect(told(client)).toEqual({ action: 'accept', content: { colour: 'red' } })
    expect(client.getSnapshot()).toMatchObject({ interrupts: [], status: 'ready' })
  })

  test('a denial is a decline, and a run that is stopped takes the question with it', async () => {
    const { client, run } = await open(connect)
    await client.respondToInterrupt({ id: (await asked(client)).id, cancel: true })
    await run
    expect(told(client)).toEqual({ action: 'decline' })

    const other = await open(connect)
    await asked(other.client)
    other.client.stop()
    expect(other.client.getSnapshot()).toMatchObject({ interrupts: [], status: 'ready' })
  })
})

test.each(all.filter((way) => !isLive(way)))(
  '%s: without a channel into the run the server is declined at once',
  async (_, connect) => {
    const { client, run } = await open(connect)
    expect(await run).toEqual({ status: 'sent' })
    expect(told(client)).toEqual({ action: 'decline' })
  },
)

test('an answer counts from the user of the run only, in its thread and its run', async () => {
  const agent = await agentThatAsks()
  const context = (request: { headers: NodeJS.Dict<string | string[]> }) => ({
    subject: String(request.headers['x-user'] ?? 'ada'),
  })
  const chat = toNodeHandler(agent, { context, live: true })
  const answers = toNodeAnswerHandler(agent, { context })
  const server = createServer((request, response) =>
    request.url?.startsWith('/answers') ? answers(request, response) : chat(request, response),
  )
  const url = `http://${await listening(server)}/`
  const connection = { ...fetchServerSentEvents(url), ...postAnswers(`${url}answers`) }
  const client = new ChatClient({ connection, threadId: 'thread' })
  onTestFinished(client.dispose)
  const run = client.sendMessage('Paint it')
  const { id: interruptId } = await asked(client)
  const runId = client.inspect().openRun
  const post = async (user: string, where: object, payload: unknown = { colour: 'blue' }) => {
    const resume: ResumeEntry[] = [{ interruptId, status: 'resolved', payload }]
    const response = await fetch(`${url}answers`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-user': user },
      body: JSON.stringify({ threadId: 'thread', runId, resume, ...where }),
    })
    return response.status
  }
  expect(await post('eve', {})).toBe(409)
  expect(await post('ada', { threadId: 'other' })).toBe(409)
  expect(await post('ada', { runId: 'other' })).toBe(409)
  expect(client.getSnapshot().interrupts).toHaveLength(1)
  expect(await post('ada', {})).toBe(200)
  expect(await run).toEqual({ status: 'sent' })
  expect(told(client)).toEqual({ action: 'accept', content: { colour: 'blue' } })
  expect(await post('ada', {}, { colour: 'red' })).toBe(409)
})
