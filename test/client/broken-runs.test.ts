import { aiSdk } from '@countersign/ai-sdk'
import { ChatClient, clientTool, fetchServerSentEvents } from '@countersign/client'
import type { RunAgentInput } from '@countersign/core'
import { describe, expect, test, vi } from 'vitest'
import { z } from 'zod'
import { memoryPersistence } from './fake-browser.js'
import { ask, call, type Event, finish, open, resultOf, server, yes } from './foreign-server.js'
import { callOf, failOnUnhandledRejections, pendingId, saidBy } from './open-chat.js'
import { pay, payAtOnce, payServer } from './pay-server.js'
import { cutAfter, frames, half, serve, story } from './raw-server.js'

failOnUnhandledRejections()

// Runs that broke off: what is shown of them, sent again, and run.

describe('F28 a run that broke off', () => {
  test('in the middle of a text: retry() neither shows nor sends the half', async () => {
    const { asked, url } = await serve(
      (response, run) => {
        cutAfter(response, frames(half(run)))
      },
      (response, run) => response.end(frames(story(run, 'The capital of France is Paris.'))),
    )
    const client = new ChatClient({ connection: fetchServerSentEvents(url) })
    await client.sendMessage('go')
    expect(saidBy(client)).toBe('The capital of Fra')
    await client.retry()
    expect(saidBy(client)).toBe('The capital of France is Paris.')
    expect(asked[1]?.run.messages).toEqual(asked[0]?.run.messages)
  })

  test('over aiSdk({ resume }) made anew with every rendering is taken up, and not asked again', async () => {
    const begun = [
      { type: 'start', messageId: 'm1' },
      { type: 'start-step' },
      { type: 'text-start', id: 't' },
      { type: 'text-delta', id: 't', delta: 'One ' },
    ]
    const rest = [
      { type: 'text-delta', id: 't', delta: 'two.' },
      { type: 'text-end', id: 't' },
      { type: 'finish-step' },
      { type: 'finish' },
    ]
    const { asked, url } = await serve(
      (response) => {
        cutAfter(response, frames(begun))
      },
      (response) => response.end(frames([...begun, ...rest])),
    )
    const client = new ChatClient({ connection: aiSdk({ api: url, resume: 'replay' }) })
    await client.sendMessage('go')
    client.setOptions({ connection: aiSdk({ api: url, resume: 'replay' }) })
    await client.retry()
    expect(asked.map(({ method }) => method)).toEqual(['POST', 'GET'])
    expect([saidBy(client), client.getSnapshot().status]).toEqual(['One two.', 'ready'])
  })
})

test.each(['cut', 'RUN_ERROR'])(
  'after a reload, a call of a broken run (%s) holds no answer back, and runs no client tool',
  async (end) => {
    const ran: unknown[] = []
    const input = z.object({ n: z.number() })
    const act = clientTool({ name: 'act', description: 'Acts.', input, execute: ({ n }) => ran.push(n) })
    for (const asks of [true, false]) {
      const { connection, resume } = server(
        () => [...call('c1', 1), end === 'cut' ? 'cut' : { type: 'RUN_ERROR', message: 'It failed.' }],
        (input) => (asks ? [...call('c2', 2), finish(input, ['int-2', 'c2'])] : [finish(input)]),
      )
      const persistence = memoryPersistence()
      const page = async () => {
        const { client } = open({ connection, persistence, tools: [act] })
        client.attach()
        await client.restore()
        return client
      }
      const before = await page()
      await before.sendMessage('go')
      await before.retry()
      before.dispose()
      const after = await page()
      await after.retry()
      if (asks) expect(await after.addToolApprovalResponse(yes('int-2'))).toEqual({ status: 'sent' })
      expect(resume()).toEqual(asks ? [[], [], ['int-2 yes']] : [[], []])
      after.dispose()
    }
    expect(ran).toEqual([])
  },
)

const asked = (n: number): Event[] => [...call('call_0', n), ask('call_0', `int-${n}`, n)]

test.each([
  ['the stream breaks', 'cut' as const],
  ['the run fails', { type: 'RUN_ERROR', message: 'boom' } as const],
])(
  'a reply that carried an answer and broke in its text is asked for again after a reload as without one (%s)',
  async (_, end) => {
    const half: Event[] = [
      { type: 'TEXT_MESSAGE_START', messageId: 'm9', role: 'assistant' },
      { type: 'TEXT_MESSAGE_CONTENT', messageId: 'm9', delta: 'I am about to del' },
    ]
    const sent = async (isReloaded: boolean) => {
      const { connection, requests } = server(
        (input) => [...asked(1), finish(input, ['int-1', 'call_0'])],
        () => [...half, end],
      )
      const stored = memoryPersistence()
      const page = () => open({ connection, persistence: stored }).client
      let client = page()
      client.attach()
      await client.sendMessage('go')
      await client.addToolApprovalResponse(yes('int-1'))
      if (isReloaded) {
        await vi.waitUntil(() => stored.texts.size > 0)
        client.dispose()
        client = page()
        client.attach()
        await client.restore()
        expect(client.getSnapshot().error).toBeDefined()
      }
      await client.retry()
      return requests[2]?.messages.map(({ role, content }) => [role, content])
    }
    expect(await sent(true)).toEqual(await sent(false))
  },
)

test('a call whose run ended before its result says so, in the same page and in the next one, until the result comes', async () => {
  const persistence = memoryPersistence()
  const runs = [
    (): (Event | 'cut')[] => [...call('call_0', 1), 'cut'],
    (input: RunAgentInput) => [resultOf('call_0', 'done'), finish(input)],
  ]
  const { connection } = server(...runs)
  const first = open({ connection, persistence })
  await first.client.sendMessage('go')
  const interrupted = { state: 'input-complete', error: { code: 'interrupted' } }
  expect(first.calls()).toMatchObject([interrupted])
  await first.client.dispose()
  const second = open({ connection, persistence })
  second.client.attach()
  await vi.waitUntil(() => second.calls().length === 1)
  expect(second.calls()).toMatchObject([interrupted])
  await second.client.sendMessage('and?')
  expect(second.calls()[0]).toMatchObject({ state: 'complete', output: 'done' })
  expect(second.calls()[0]).not.toHaveProperty('error')
})

test('a call whose run broke before it was asked about runs once it is asked about and approved', async () => {
  const ran: string[] = []
  const { connection, cutOnce } = payServer({ tools: [pay.client(() => 'on the page')] })
  cutOnce({ after: 'TOOL_CALL_END' })
  const client = new ChatClient({ connection, tools: [pay.client(() => ran.push('it') && 'paid')] })
  await client.sendMessage('go')
  await client.retry()
  expect(await client.addToolApprovalResponse({ id: pendingId(client), approved: true })).toEqual({
    status: 'sent',
  })
  await expect.poll(() => client.getSnapshot().status).toBe('ready')
  expect(ran).toEqual(['it'])
})

test('a client tool that nobody was asked about runs after its run broke, once the server leaves it to the page again', async () => {
  let ran = 0
  const { connection, cutOnce } = payServer({ tools: [payAtOnce.client(() => 'on the page')] })
  cutOnce({ before: 'RUN_FINISHED' })
  const client = new ChatClient({ connection, tools: [payAtOnce.client(() => `paid ${++ran}`)] })
  await client.sendMessage('go')
  await client.retry()
  await expect.poll(() => callOf(client, 'c1').state).toBe('complete')
  expect(ran).toBe(1)
})
