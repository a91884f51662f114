import { openai } from '@countersign/openai'
import type { ModelMessage, ModelToolResult } from '@countersign/server'
import { expect, test } from 'vitest'
import { answering, chunk, collect, completed, saying, sse } from './server.js'

const asked: ModelMessage = {
  role: 'assistant',
  content: [
    {
      type: 'tool-call',
      id: 'call_1',
      name: 'search_docs',
      arguments: '{"q":"x"}',
      providerExecuted: true,
      approval: { id: 'mcpr_1', state: 'requested' },
      metadata: { type: 'mcp_approval_request', serverLabel: 'docs', itemId: 'mcpr_1' },
    },
  ],
}

const answered = (approved: boolean): ModelMessage => ({
  role: 'tool',
  content: [{ type: 'approval-response', approvalId: 'mcpr_1', toolCallId: 'call_1', approved }],
})

const resulted = (outcome: ModelToolResult['outcome']): ModelMessage => ({
  role: 'tool',
  content: [{ type: 'tool-result', toolCallId: 'call_1', toolName: 'search_docs', outcome }],
})

/** What is sent for these messages by an SDK that may retry, to a server that fails once. */
async function sent(...messages: readonly ModelMessage[]) {
  const server = answering(
    () => Response.json({ error: { message: 'Busy' } }, { status: 503, headers: { 'retry-after-ms': '1' } }),
    () => sse(completed()),
  )
  const model = openai({ model: 'gpt-5', apiKey: 'key', options: { fetch: server.fetch, maxRetries: 2 } })
  const error = await collect(model, saying(...messages)).then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  return { bodies: server.bodies, error }
}

test('a request that tells the provider yes is sent once, whatever the SDK may retry', async () => {
  const { bodies, error } = await sent(asked, answered(true))
  expect(bodies).toHaveLength(1)
  expect(bodies[0]?.input).toContainEqual({
    type: 'mcp_approval_response',
    approval_request_id: 'mcpr_1',
    approve: true,
  })
  expect(error).toMatchObject({ code: 'model-failed', data: { status: 503, retryable: true } })
})

test('a no, which runs nothing, and any other request are retried as the SDK is told to', async () => {
  for (const messages of [[asked, answered(false)], []]) {
    const { bodies, error } = await sent(...messages)
    expect([bodies.length, error]).toEqual([2, undefined])
  }
})

test('the model hears of a call of the provider that was interrupted, without the ids of what is not there', async () => {
  const reason = 'It may or may not have run.'
  const { bodies } = await sent(asked, resulted({ kind: 'execution_error', reason, code: 'interrupted' }))
  expect(bodies[1]?.input).toEqual([
    {
      role: 'assistant',
      content: expect.stringMatching(/^The call of search_docs gave no result: .*may or may not have run/),
    },
    { role: 'user', content: [{ type: 'input_text', text: 'Hi' }] },
  ])
  expect(JSON.stringify(bodies)).not.toContain('mcpr_1')
})

test('S0.64 a compatible server, which asks nobody, gets neither the request for approval nor the answer', async () => {
  const server = answering(() => sse(chunk({ content: 'ok' }), chunk({}, 'stop')))
  const model = openai({ api: 'chat', model: 'm', apiKey: 'none', options: { fetch: server.fetch } })
  await collect(model, saying(asked, answered(true)))
  expect(server.bodies[0]?.messages).toEqual([{ role: 'user', content: 'Hi' }])
})
