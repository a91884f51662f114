import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { CountersignError, toAGUIMessages, type UIMessage } from '@countersign/core'
import { createAgent, type ModelRequest, tool } from '@countersign/server'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { protocols } from './protocols.mjs'
import { casesOf, ownFixtures, type ReplayCase } from './replay.mjs'
import { serve } from './serve.js'

/**
 * The loops that were recorded in several steps, run by the engine: each request of ours must hold what the recorded one holds (ids,
 * signatures, encrypted content), or, where none was recorded, what the step before it said must come back.
 */

const read = (path: string) => readFileSync(join(ownFixtures, path))

const groups = new Map<string, readonly ReplayCase[]>()
for (const entry of casesOf(ownFixtures)) {
  const { group, protocol } = entry
  if (group !== undefined && protocol.startsWith('openai'))
    groups.set(group, [...(groups.get(group) ?? []), entry])
}

/** Values that a provider knows an item again by, or that it signed. */
const carried = [
  'id',
  'call_id',
  'tool_call_id',
  'encrypted_content',
  'signature',
  'phase',
  'reasoning',
  'name',
]

/** Every such value in a body; under which field it goes back is a client's own choice. */
function carriedIn(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap((inner) => carriedIn(inner))
  if (typeof value !== 'object' || value === null) return []
  return Object.entries(value).flatMap(([key, inner]) =>
    typeof inner === 'string' ? (carried.includes(key) ? [inner] : []) : carriedIn(inner),
  )
}

function conversationOf(body: unknown): unknown {
  if (typeof body !== 'object' || body === null) return undefined
  return 'input' in body ? body.input : 'messages' in body ? body.messages : undefined
}

/** Every tool that a recorded answer calls. */
function toolsOf(steps: readonly ReplayCase[]) {
  const names = steps.flatMap(({ expect: path }) => {
    const { toolCalls } = JSON.parse(read(path).toString())
    return toolCalls.map(({ name }: { name: string }) => name)
  })
  return [...new Set<string>(names)].map((name) =>
    tool({ name, description: name, input: z.looseObject({}), execute: () => `result of ${name}` }),
  )
}

const go: UIMessage = { id: 'user_1', role: 'user', parts: [{ type: 'text', text: 'go' }] }

/** Runs the recorded steps as one loop and gives the conversations that we sent. */
async function play(steps: readonly ReplayCase[]): Promise<readonly unknown[]> {
  const server = await serve(...steps.map(({ file, contentType }) => ({ body: read(file), contentType })))
  const [first] = steps
  const model = protocols[first?.protocol ?? '']?.model(server.origin, { stream: true, id: first?.model })
  if (model === undefined) throw new Error('there is no adapter')
  const agent = createAgent({ model, tools: toolsOf(steps), warn: () => {}, maxSteps: steps.length })
  const input = {
    threadId: 'thread',
    runId: 'run',
    messages: [...toAGUIMessages([go])],
    tools: [],
    context: [],
    state: {},
    forwardedProps: {},
  }
  await agent.generate(input)
  return server.requests.map(({ body }) => conversationOf(body))
}

const asks = (steps: readonly ReplayCase[]) =>
  steps.some(({ contains }) => contains.includes('mcp-approval-request'))
const fails = (steps: readonly ReplayCase[]) => steps.some(({ contains }) => contains.includes('error'))

for (const [group, steps] of groups) {
  // requests for approval have a test of their own, and the run that fails has no second step
  if (asks(steps) || fails(steps)) continue
  test(`${group}: each request holds what its recorded one holds`, async () => {
    const sent = await play(steps)
    expect(sent).toHaveLength(steps.length)
    steps.forEach(({ request }, index) => {
      if (request === undefined || index === 0) return
      const recorded = carriedIn(conversationOf(JSON.parse(read(request).toString())))
      expect(carriedIn(sent[index])).toEqual(expect.arrayContaining(recorded))
    })
  })
}

test('groq/error-mid-stream-then-retry: what was said before the error is kept, and the loop after it goes on', async () => {
  const steps = groups.get('groq/error-mid-stream-then-retry') ?? []
  const [failed, ...loop] = steps
  if (failed === undefined) throw new Error('there is no such group')
  const { reasoningStart } = JSON.parse(read(failed.expect).toString())
  const error = await play([failed]).catch((thrown: unknown) => thrown)
  if (!(error instanceof CountersignError)) throw new Error('it did not fail')
  expect(error).toMatchObject({ code: 'run-error', data: { code: 'model-failed' } })
  expect(JSON.stringify(error.data.messages)).toContain(JSON.stringify(reasoningStart).slice(1, 40))

  const sent = await play(loop)
  const [called] = loop
  const { toolCalls } = JSON.parse(read(called?.expect ?? '').toString())
  expect(sent).toHaveLength(2)
  expect(carriedIn(sent[1])).toEqual(
    expect.arrayContaining(toolCalls.flatMap(({ id, name }: { id: string; name: string }) => [id, name])),
  )
})

test('reasoning goes back before the call it led to, encrypted, under its own id, and so does every later step', async () => {
  const steps = groups.get('openai-responses/reasoning-tool-loop') ?? []
  const sent = await play(steps)
  expect(sent[1]).toMatchObject([
    { role: 'user' },
    {
      type: 'reasoning',
      id: 'rs_01830d662ab3856501693c321405c88190be3ab04d5782d5f9',
      encrypted_content: expect.stringMatching(/^gAAAAABpPDIVOKrs/),
      summary: [{ type: 'summary_text', text: expect.stringContaining('step-by-step') }],
    },
    {
      type: 'function_call',
      id: 'fc_01830d662ab3856501693c32151234819091cfca267e98cc5f',
      call_id: 'call_AB6AaRZ1FYZB2RwS6A5vbdqn',
      name: 'calculator',
    },
    { type: 'function_call_output', call_id: 'call_AB6AaRZ1FYZB2RwS6A5vbdqn' },
  ])
  const types = (items: unknown) => (Array.isArray(items) ? items.map(({ type, role }) => type ?? role) : [])
  expect(types(sent[3])).toEqual([
    'user',
    'reasoning',
    ...['function_call', 'function_call_output', 'function_call', 'function_call_output'],
    ...['function_call', 'function_call_output'],
  ])
  expect(JSON.stringify(sent[3])).toContain(JSON.stringify(sent[1]).slice(1, -1))
})

/** A request with a turn of another provider's in it. */
const foreign: ModelRequest = {
  messages: [
    { role: 'user', content: [{ type: 'text', text: 'go' }] },
    {
      role: 'assistant',
      content: [
        { type: 'reasoning', text: 'thinking', signature: 'theirs' },
        { type: 'text', text: 'Well.' },
        { type: 'tool-call', id: 'toolu_1', name: 'look', arguments: '' },
      ],
    },
    {
      role: 'tool',
      content: [
        { type: 'tool-result', toolCallId: 'toolu_1', toolName: 'look', outcome: { kind: 'ok', value: 1 } },
      ],
    },
  ],
  tools: [],
}

for (const name of ['openai-responses', 'openai-chat']) {
  test(`a turn of another provider goes on without its reasoning (${name})`, async () => {
    const protocol = protocols[name]
    if (protocol === undefined) throw new Error('there is no adapter')
    const server = await serve(protocol.say({ text: 'ok' }))
    for await (const _ of protocol
      .model(server.origin, { stream: true })
      .stream(foreign, { signal: new AbortController().signal }));
    const body = JSON.stringify(server.requests[0]?.body)
    expect(body).not.toContain('theirs')
    expect(body).toContain('toolu_1')
    expect(body).toContain('Well.')
  })
}
