import { type AiSdkMessage, aiSdk, fromAiSdkMessages } from '@countersign/ai-sdk'
import { approvalView, ChatClient } from '@countersign/client'
import { passMacrotasks } from '@countersign/testing'
import { expect, onTestFinished, test } from 'vitest'

// A route that keeps no record of answers: it runs whatever the last message has approved.

interface Part {
  readonly toolCallId: string
  readonly input: unknown
  readonly state: string
  readonly errorText?: string
  readonly approval?: { readonly approved?: boolean }
}

const called = [
  { type: 'tool-input-start', toolCallId: 'c1', toolName: 'pay' },
  { type: 'tool-input-delta', toolCallId: 'c1', inputTextDelta: '{"to":"bob"}' },
]
const whole = { type: 'tool-input-available', toolCallId: 'c1', toolName: 'pay', input: { to: 'bob' } }
const available = [...called, whole]

/** `fate`: what happens to the first request that runs a call. */
function chat(fate: 'lost' | 'cut' | 'open' | 'none', input: readonly object[] = available) {
  const ran: unknown[] = []
  const told: (string | undefined)[] = []
  let asked = 0
  const fetch: typeof globalThis.fetch = async (_, { body, signal } = {}) => {
    const last = JSON.parse(String(body)).messages.at(-1)
    const parts: Part[] = last.role === 'assistant' ? last.parts : []
    const now = parts.filter(({ state, approval }) => state === 'approval-responded' && approval?.approved)
    told.push(...parts.flatMap(({ errorText }) => errorText ?? []))
    const isFirst = ran.length === 0 && now.length > 0
    ran.push(...now.map(({ input }) => input))
    if (isFirst && fate === 'lost') throw new TypeError('lost')
    const isBroken = isFirst && fate !== 'none'
    const outputs = now.map(({ toolCallId }) => ({ type: 'tool-output-available', toolCallId, output: 1 }))
    const request = { type: 'tool-approval-request', approvalId: 'a1', toolCallId: 'c1' }
    const rest = asked++ === 0 ? [{ type: 'start-step' }, ...input, request] : outputs
    const chunks = [{ type: 'start', messageId: 'm1' }, ...(isBroken ? [] : [...rest, { type: 'finish' }])]
    const text = chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join('')
    const stream = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(new TextEncoder().encode(text))
        if (isBroken && fate === 'open')
          signal?.addEventListener('abort', () => controller.error(signal.reason))
        else if (isBroken) controller.error(new TypeError('cut'))
        else controller.close()
      },
    })
    return new Response(stream, { headers: { 'content-type': 'text/event-stream' } })
  }
  const client = new ChatClient({ threadId: 't', connection: aiSdk({ fetch }), onError: () => {} })
  onTestFinished(() => client.dispose())
  return { client, ran, told }
}

/** The call was approved, and nobody knows whether it has run. */
async function interrupted(fate: 'lost' | 'cut' | 'open') {
  const opened = chat(fate)
  const { client } = opened
  await client.sendMessage('go')
  const answer = client.addToolApprovalResponse({ id: 'a1', approved: true })
  await passMacrotasks(3)
  if (fate === 'open') client.stop()
  await answer
  expect(opened.ran).toEqual([{ to: 'bob' }])
  return opened
}

const mayHaveRun = 'It was interrupted and may or may not have run.'

test.each(['lost', 'cut', 'open'] as const)(
  'sendMessage() without content does not repeat an approval whose run was %s: the model is told that it may have run',
  async (fate) => {
    const { client, ran, told } = await interrupted(fate)
    expect(await client.sendMessage()).toEqual({ status: 'sent' })
    expect([ran.length, told]).toEqual([1, [mayHaveRun]])
    expect(client.getSnapshot().messages[1]?.parts[0]).toMatchObject({
      state: 'error',
      error: { message: mayHaveRun },
    })
  },
)

test.each(['lost', 'cut', 'open'] as const)(
  'after clearError(), neither sendMessage() nor retry() repeats an approval whose run was %s',
  async (fate) => {
    const { client, ran, told } = await interrupted(fate)
    client.clearError()
    // A stop is not an error: there, retry() goes on.
    if (fate !== 'open') await client.retry()
    await client.sendMessage()
    expect([ran.length, told]).toEqual([1, [mayHaveRun]])
  },
)

test('retry() of a broken run repeats its approval', async () => {
  const { client, ran, told } = await interrupted('cut')
  await client.retry()
  expect([ran.length, told]).toEqual([2, []])
})

test.each([
  ['has defaults of the schema', called, { ...whole, input: { to: 'bob', amount: 1000 } }],
  ['is another one', called, { ...whole, input: { to: 'eve' } }],
  ['is null', called, { ...whole, input: null }],
  ['is a text', called, { ...whole, input: 'eve' }],
  [
    'replaces a text that is not JSON',
    [...called.slice(0, 1), { ...called[1], inputTextDelta: '{"to"' }],
    whole,
  ],
])(
  'an input that %s is shown in every view before it is approved, and is what runs',
  async (_, streamed, end) => {
    const { client, ran } = chat('none', [...streamed, end])
    await client.sendMessage('go')
    const [call] = client.getSnapshot().pendingApprovals
    expect(call?.input).toEqual(end.input)
    for (const exact of [false, true]) {
      const view = call && approvalView(call, { exact })
      expect(JSON.parse(view?.arguments?.text.text ?? 'null')).toEqual(end.input)
      expect(view).toMatchObject({ disabled: false, suspicious: false })
      expect(view?.arguments?.masked ?? []).toEqual([])
    }
    await client.addToolApprovalResponse({ id: 'a1', approved: true })
    expect(ran).toEqual([end.input])
  },
)

/** A page that shows an assistant's message with these calls, each as `approved`, over a foreign route that sends these chunks. */
async function answered(approved: Record<string, boolean>, chunks: readonly object[], hasStep = true) {
  const parts = Object.entries(approved).map(([toolCallId, yes]) => ({
    type: 'tool-pay' as const,
    toolCallId,
    state: yes ? ('approval-requested' as const) : ('output-denied' as const),
    input: { to: toolCallId },
    approval: { id: `a-${toolCallId}`, ...(!yes && { approved: false }) },
  }))
  const messages: AiSdkMessage[] = [
    { id: 'u1', role: 'user', parts: [{ type: 'text', text: 'go' }] },
    { id: 'm1', role: 'assistant', parts },
  ]
  const step = hasStep ? [{ type: 'start-step' }] : []
  const sent = [{ type: 'start', messageId: 'm1' }, ...step, ...chunks, { type: 'finish' }]
  const text = sent.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join('')
  const fetch = async () => new Response(text, { headers: { 'content-type': 'text/event-stream' } })
  const warnings: unknown[] = []
  const client = new ChatClient({
    ...{ threadId: 't', connection: aiSdk({ fetch }), initialMessages: fromAiSdkMessages(messages) },
    onWarning: (warning) => warnings.push(warning),
  })
  onTestFinished(client.dispose)
  await client.addToolApprovalResponse({ id: 'a-c2', approved: true })
  const ids = client.getSnapshot().pendingApprovals.map(({ approval, input }) => [approval.id, input])
  return { asked: ids, warnings }
}

const ran = { type: 'tool-output-available', toolCallId: 'c2', output: 1 }

test.each(['c1', 'eve'].flatMap((to) => [true, false].map((hasStep) => ({ to, hasStep }))))(
  'a route that asks again under the id of a denied call is shown with what it asks for ($to, new step: $hasStep)',
  async ({ to, hasStep }) => {
    const input = { to }
    const again = { type: 'tool-input-available', toolCallId: 'c1', toolName: 'pay', input }
    const request = { type: 'tool-approval-request', approvalId: 'a3', toolCallId: 'c1' }
    const { asked, warnings } = await answered({ c1: false, c2: true }, [ran, again, request], hasStep)
    expect(asked).toEqual([['a3', input]])
    expect(warnings).toEqual([])
  },
)

test('a route that asks under the id of an approved call for other arguments is shown with those', async () => {
  const input = { to: 'eve' }
  const again = { type: 'tool-input-available', toolCallId: 'c2', toolName: 'pay', input }
  const request = { type: 'tool-approval-request', approvalId: 'a3', toolCallId: 'c2' }
  const { asked } = await answered({ c2: true }, [again, request])
  expect(asked).toEqual([['a3', input]])
})

/** A page without history over a foreign route whose only reply has these chunks. */
async function foreign(chunks: readonly object[]) {
  const sent = [{ type: 'start', messageId: 'm1' }, { type: 'start-step' }, ...chunks, { type: 'finish' }]
  const text = sent.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join('')
  const fetch = async () => new Response(text, { headers: { 'content-type': 'text/event-stream' } })
  const told: unknown[] = []
  const client = new ChatClient({
    ...{ threadId: 't', connection: aiSdk({ fetch }), onWarning: (warning) => told.push(warning) },
    onEvent: (event) => told.push(...(event.type === 'CUSTOM' ? [event.name] : [])),
  })
  onTestFinished(client.dispose)
  await client.sendMessage('go')
  return { told, call: client.getSnapshot().messages[1]?.parts[0] }
}

const asking = [...available, { type: 'tool-approval-request', approvalId: 'a1', toolCallId: 'c1' }]
const decided = { decision: 'approve', by: 'person' }

test.each([
  ['data-tool-result', undefined],
  ['data-tool-result', { decided }],
  ['data-countersign-result', undefined],
  ['data-countersign-result', { decided }],
  ['data-countersign-result', { outcome: 'denied', decided }],
])('transient data of a foreign route ends no call of its own stream (%s, %j)', async (type, said) => {
  const data = { toolCallId: 'c1', content: '"progress"', said }
  const open = await foreign([...asking, { type, data, transient: true }])
  expect(open.call).toMatchObject({ state: 'approval-requested' })
  const real = { type: 'tool-output-available', toolCallId: 'c1', output: 'real' }
  const ended = await foreign([...available, { type, data, transient: true }, real])
  expect(ended.call).toMatchObject({ state: 'complete', output: 'real' })
})

test('transient data of a foreign route that is named like a result reaches the application', async () => {
  const data = { toolCallId: 'c1', content: 'progress' }
  const { told } = await foreign([...available, { type: 'data-tool-result', data, transient: true }])
  expect(told).toEqual(['data-tool-result'])
})
