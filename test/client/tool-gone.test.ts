import { createServer } from 'node:http'
import { aiSdk, toAiSdkMessages } from '@countersign/ai-sdk'
import { handleAiSdkChat } from '@countersign/ai-sdk/server'
import {
  ChatClient,
  type Connection,
  fetchServerSentEvents,
  nextStep,
  type ToolCallPart,
} from '@countersign/client'
import { createAgent, memoryLedger, type ScriptedModel, scriptedModel, tool } from '@countersign/server'
import { toNodeHandler } from '@countersign/server/node'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { listening } from '../engine/listening.js'
import { answerFetch } from '../interop/fetch-server.js'

const connections: readonly (readonly [string, (url: string) => Connection])[] = [
  ['AG-UI', fetchServerSentEvents],
  ['AI SDK', aiSdkRoute],
]

function aiSdkRoute(url: string): Connection {
  return aiSdk({ api: `${url}ai-sdk` })
}

/** A server that asks for `keep` and `gone` at once, in a chat; `deploy` starts it anew with other tools and the same ledger. */
async function asked(connect: (url: string) => Connection, names: readonly string[] = ['keep', 'gone']) {
  const ran: string[] = []
  const ledger = memoryLedger()
  const model: ScriptedModel = scriptedModel(({ messages }) => {
    const isFirst = messages.filter(({ role }) => role === 'user').length === 1
    const calls = names.map((name) => ({
      type: 'tool-call' as const,
      id: `c-${name}`,
      name,
      arguments: '{}',
    }))
    return isFirst && messages.at(-1)?.role === 'user'
      ? [...calls, { type: 'finish', reason: 'tool_calls' }]
      : [
          { type: 'text-delta', delta: 'Fine.' },
          { type: 'finish', reason: 'stop' },
        ]
  })
  const agentWith = (tools: readonly string[]) =>
    createAgent({
      model,
      tools: tools.map((name) =>
        tool({
          name,
          description: name,
          input: z.object({}),
          needsApproval: true,
          execute: () => {
            ran.push(name)
            return `did ${name}`
          },
        }),
      ),
      approvals: { secret: 'a secret of these tests, more than 32 bytes', ledger },
      warn: () => {},
      onError: () => {},
    })
  let agent = agentWith(names)
  const context = () => ({ subject: 'ann' })
  const overAiSdk = (request: Request) => handleAiSdkChat(agent, request, { context: context() })
  const server = createServer((request, response) =>
    request.url === '/ai-sdk'
      ? answerFetch(overAiSdk, request, response)
      : toNodeHandler(agent, { context })(request, response),
  )
  const url = `http://${await listening(server)}/`
  const client = new ChatClient({ connection: connect(url), threadId: 'thread' })
  onTestFinished(client.dispose)
  await client.sendMessage('go')
  const part = (name: string) =>
    client
      .getSnapshot()
      .messages.flatMap(({ parts }) => parts)
      .find((one): one is ToolCallPart => one.type === 'tool-call' && one.name === name)
  return {
    ran,
    model,
    client,
    url,
    part,
    deploy: (...tools: string[]) => {
      agent = agentWith(tools)
    },
    answer: (name: string, approved: boolean) =>
      client.addToolApprovalResponse({ id: part(name)?.approval?.id ?? '', approved }),
  }
}

for (const left of [['other'], []]) {
  const now = left.length === 0 ? 'all tools are gone' : 'its tool is gone'

  test(`an approval whose request failed since ${now} does not end the conversation: a further message closes the call and reaches the model`, async () => {
    const { ran, model, client, part, deploy, answer } = await asked(fetchServerSentEvents, ['gone'])
    deploy(...left)
    await answer('gone', true)
    const { error } = client.getSnapshot()
    expect(error?.message).toContain('another message')
    expect(part('gone')).toMatchObject({ state: 'approval-responded', approval: { approved: true } })
    await client.retry()
    expect([client.getSnapshot().error?.message, model.requests.length]).toEqual([error?.message, 1])

    expect(await client.sendMessage('and now?')).toEqual({ status: 'sent' })
    expect(client.getSnapshot().error).toBeUndefined()
    expect(part('gone')).toMatchObject({
      state: 'cancelled',
      error: { code: 'approval-stale', message: 'There is no tool named "gone".' },
    })
    const gone = part('gone')
    expect(gone && nextStep(gone)).toMatchObject({ state: 'unused' })
    expect(model.requests.length).toBe(2)
    expect(JSON.stringify(model.requests[1]?.messages)).toContain('There is no tool named')
    expect(client.getSnapshot().messages.at(-1)?.parts).toMatchObject([{ type: 'text', text: 'Fine.' }])
    // nor later, with the tool back: it was told as not run
    deploy('gone')
    await client.sendMessage('still there?')
    expect([ran, client.getSnapshot().error]).toEqual([[], undefined])
  })

  test(`a denial that failed since ${now} does not end the conversation either`, async () => {
    const { ran, model, client, part, deploy, answer } = await asked(fetchServerSentEvents, ['gone'])
    deploy(...left)
    await answer('gone', false)
    await client.sendMessage('and now?')
    expect([ran, part('gone')?.state, client.getSnapshot().error]).toEqual([[], 'denied', undefined])
    expect(model.requests.at(-1)?.messages.at(-1)?.role).toBe('user')
  })

  test(`over the AI SDK, too, the conversation goes on where ${now}, and no call runs`, async () => {
    const { ran, model, client, deploy, answer } = await asked(aiSdkRoute, ['gone'])
    deploy(...left)
    await answer('gone', true)
    expect(client.getSnapshot().error?.message).toContain('another message')
    expect(await client.sendMessage('and now?')).toEqual({ status: 'sent' })
    expect([ran, model.requests.length, client.getSnapshot().error]).toEqual([[], 2, undefined])
  })
}

test('an approved sibling of a call whose tool is gone waits with it, and runs with the next message', async () => {
  const { ran, client, part, deploy, answer } = await asked(fetchServerSentEvents)
  deploy('keep')
  await Promise.all([answer('keep', true), answer('gone', true)])
  expect([ran, part('keep')?.state]).toEqual([[], 'approval-responded'])
  await client.sendMessage('and now?')
  expect(ran).toEqual(['keep'])
  expect(part('keep')).toMatchObject({ state: 'complete', output: 'did keep' })
  expect(part('gone')).toMatchObject({ state: 'cancelled', error: { code: 'approval-stale' } })
  expect(client.getSnapshot().error).toBeUndefined()
})

test('the same for an AI SDK client of another make, which keeps its answers in the history', async () => {
  const { ran, model, client, url, deploy, answer } = await asked(aiSdkRoute)
  deploy('keep')
  await Promise.all([answer('keep', true), answer('gone', true)])
  const messages = [
    ...toAiSdkMessages(client.getSnapshot().messages),
    { id: 'u2', role: 'user', parts: [{ type: 'text', text: 'and now?' }] },
  ]
  const response = await fetch(`${url}ai-sdk`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ id: 'thread', messages, trigger: 'submit-message' }),
  })
  const told = await response.text()
  expect(told).toContain('Fine.')
  expect(told).not.toContain('"error"')
  expect([ran, model.requests.length]).toEqual([['keep'], 2])
  const heard = JSON.stringify(model.requests[1]?.messages)
  expect(heard).toContain('did keep')
  expect(heard).toContain('There is no tool named')
})

for (const [door, connect] of connections) {
  test(`${door}: a denial of a call whose tool is gone needs no tool of its own`, async () => {
    const { ran, model, client, part, deploy, answer } = await asked(connect)
    deploy('keep')
    await Promise.all([answer('keep', true), answer('gone', false)])
    expect([ran, part('gone')?.state, model.requests.length]).toEqual([['keep'], 'denied', 2])
    expect(client.getSnapshot().error).toBeUndefined()
  })

  test(`${door}: with the tool back, the same approval counts`, async () => {
    const { ran, client, part, deploy, answer } = await asked(connect)
    deploy('keep')
    await Promise.all([answer('keep', true), answer('gone', true)])
    deploy('keep', 'gone')
    await client.retry()
    expect([ran.toSorted(), part('gone')?.state]).toEqual([['gone', 'keep'], 'complete'])
  })
}

test('an approval whose request failed since its tool is gone can be taken back with a denial, and its sibling runs', async () => {
  const { ran, model, client, part, deploy, answer } = await asked(fetchServerSentEvents)
  deploy('keep')
  await Promise.all([answer('keep', true), answer('gone', true)])
  expect(client.getSnapshot().error).toMatchObject({ data: { code: 'tool-not-found' } })
  expect(await answer('gone', false)).toEqual({ status: 'sent' })
  expect([ran, model.requests.length]).toEqual([['keep'], 2])
  expect(part('gone')).toMatchObject({ state: 'denied', approval: { approved: false } })
  expect(await answer('gone', true)).toEqual({ status: 'already-answered' })
})
