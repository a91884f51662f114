import type { AGUIEvent, Message, RunAgentInput, UIMessage } from '@countersign/core'
import {
  createAgent,
  loadThread,
  type Model,
  type ModelEvent,
  memoryLedger,
  memoryThreads,
  threadResponse,
  tool,
} from '@countersign/server'
import { expect, test } from 'vitest'
import { z } from 'zod'

// What happens to a stored conversation when a message is edited or a reply generated again.

const context = { subject: 'ann' }

function setUp(...replies: (readonly ModelEvent[])[]) {
  const seen: string[][] = []
  const ran: string[] = []
  const model: Model = {
    id: 'test/model',
    async *stream({ messages }) {
      seen.push(messages.flatMap(({ content }) => [content].flat().flatMap((part) => textOf(part))))
      yield* replies.shift() ?? [{ type: 'text-delta', delta: `Reply ${seen.length}.` }]
      yield { type: 'finish', reason: 'stop' }
    },
  }
  const remove = tool({
    name: 'remove',
    description: 'Removes a file.',
    input: z.object({ path: z.string() }),
    needsApproval: true,
    execute: ({ path }) => {
      ran.push(path)
      return 'removed'
    },
  })
  const ledger = memoryLedger()
  const agent = createAgent({
    model,
    tools: [remove],
    threads: memoryThreads(),
    approvals: { secret: 'only for this test, 32 bytes long!', ledger },
    warn: () => {},
  })
  let runs = 0
  async function run(
    messages: readonly Message[],
    page: Readonly<Record<string, string>> = {},
    more: Partial<RunAgentInput> = {},
  ): Promise<AGUIEvent[]> {
    const input = { threadId: 't', runId: `run-${++runs}`, messages: [...messages], ...more }
    const events: AGUIEvent[] = []
    const forwardedProps = { countersign: page }
    for await (const event of agent.run({ ...input, forwardedProps, protocolVersion: '1.0' }, { context }))
      events.push(event)
    return events
  }
  const load = async () => (await loadThread(agent, { subject: 'ann', threadId: 't' }))?.messages ?? []
  return { agent, ledger, run, load, seen, ran }
}

const textOf = (part: unknown): string[] =>
  typeof part === 'object' && part !== null && 'text' in part ? [String(part.text)] : []

const user = (id: string, content: string): Message => ({ id, role: 'user', content })

const asks: readonly ModelEvent[] = [
  { type: 'tool-call', id: 'c1', name: 'remove', arguments: '{"path":"a.txt"}' },
]

const words = (messages: readonly UIMessage[]) =>
  messages.map(({ parts }) =>
    parts
      .map((part) => (part.type === 'text' ? part.text : part.type === 'tool-call' ? part.state : part.type))
      .join(' '),
  )

const versionsOf = ({ metadata }: UIMessage): readonly string[] => {
  const own: { readonly versions?: readonly string[] } = metadata?.countersign ?? {}
  return own.versions ?? []
}

const requestIn = (events: readonly AGUIEvent[]) => {
  const last = events.at(-1)
  const outcome = last?.type === 'RUN_FINISHED' ? last.outcome : undefined
  return (outcome?.type === 'interrupt' && outcome.interrupts[0]?.id) || ''
}

const approve = (interruptId: string): Partial<RunAgentInput> => ({
  resume: [{ interruptId, status: 'resolved', payload: { approved: true } }],
})

test('T9 regenerate asks for the reply anew; the earlier reply is kept as another version, and can be shown again', async () => {
  const { agent, run, load, seen } = setUp()
  await run([user('u1', 'One')])
  await run([user('u2', 'Two')])
  await run([user('u1', 'One')], { regenerate: 'u1' })
  expect(seen.at(-1)).toEqual(['One'])
  const [, again] = await load()
  expect(words(await load())).toEqual(['One', 'Reply 3.'])
  const [first = '', second] = again ? versionsOf(again) : []
  expect(second).toBe(again?.id)
  await agent.showVersion({ threadId: 't', messageId: first }, context)
  expect(words(await load())).toEqual(['One', 'Reply 1.', 'Two', 'Reply 2.'])
  expect((await load()).map((message) => versionsOf(message).length)).toEqual([0, 2, 0, 0])
  await run([user('u3', 'Three')])
  expect(seen.at(-1)).toEqual(['One', 'Reply 1.', 'Two', 'Reply 2.', 'Three'])
  await agent.showVersion({ threadId: 't', messageId: again?.id ?? '' }, context)
  expect(words(await load())).toEqual(['One', 'Reply 3.'])
})

test('T9 an edited message takes the place of the earlier one, also of the first; each version keeps what followed it', async () => {
  const { agent, run, load, seen } = setUp()
  await run([user('u1', 'One')])
  await run([user('u2', 'Two')])
  await run([user('u2b', 'Two, edited')], { edit: 'u2', after: 'u1' })
  expect(seen.at(-1)).toEqual(['One', 'Reply 1.', 'Two, edited'])
  await run([user('u1b', 'One, edited')], { edit: 'u1' })
  expect(seen.at(-1)).toEqual(['One, edited'])
  const [shown] = await load()
  expect(shown && versionsOf(shown)).toEqual(['u1', 'u1b'])
  await agent.showVersion({ threadId: 't', messageId: 'u1' }, context)
  expect(words(await load())).toEqual(['One', 'Reply 1.', 'Two, edited', 'Reply 3.'])
  expect((await load()).map(versionsOf)).toEqual([['u1', 'u1b'], [], ['u2', 'u2b'], []])
})

test('T9 which versions a message has is only for the server to say', async () => {
  const { run, load } = setUp()
  const metadata = { own: 1, countersign: { versions: ['u0', 'u1', 'u2'] } }
  await run([{ id: 'u1', role: 'user', content: 'One', metadata }])
  const [said] = await load()
  expect([said && versionsOf(said), said?.metadata]).toEqual([[], { own: 1 }])
})

test('T9 the approval requests of a branch that was left are cancelled in the ledger, and cannot be answered', async () => {
  const { agent, ledger, run, load, ran } = setUp([{ type: 'text-delta', delta: 'Well.' }], asks)
  await run([user('u1', 'One')])
  const request = requestIn(await run([user('u2', 'Remove a.txt')]))
  expect(request).not.toBe('')
  const [, , asked, call] = await load()
  await run([user('u2b', 'Leave it')], { edit: 'u2' })
  expect(await ledger.unsettled('ann', 't')).toEqual([])
  expect(await ledger.lookup({ owner: 'ann', threadId: 't', approvalId: request })).toMatchObject({
    state: { phase: 'done', answer: { decision: 'cancel', by: 'server' } },
  })
  const refused = await run([], {}, approve(request))
  expect(refused).toContainEqual(expect.objectContaining({ type: 'CUSTOM', name: 'approval-refused' }))
  await agent.showVersion({ threadId: 't', messageId: asked?.id ?? '' }, context)
  expect(words(await load())).toEqual(['One', 'Well.', 'Remove a.txt', 'cancelled tool-result'])
  await run([], {}, approve(request))
  // The page may still have the call as it was.
  const token = call?.parts.find((part) => part.type === 'tool-call')?.approval?.token
  const [entry] = approve(request).resume ?? []
  await run([], {}, { resume: entry ? [{ ...entry, metadata: { countersign: { token } } }] : [] })
  expect(ran).toEqual([])
})

test('T9 to show another version cancels what is open on the branch that was shown', async () => {
  const { agent, ledger, run, load, ran } = setUp([{ type: 'text-delta', delta: 'Well.' }], asks)
  await run([user('u1', 'One')])
  const request = requestIn(await run([], { regenerate: 'u1' }))
  const [first = ''] = versionsOf((await load())[1] ?? { id: '', role: 'user', parts: [] })
  await agent.showVersion({ threadId: 't', messageId: first }, context)
  expect(words(await load())).toEqual(['One', 'Well.'])
  expect(await ledger.unsettled('ann', 't')).toEqual([])
  await run([], {}, approve(request))
  expect(ran).toEqual([])
})

test('T9 a request below another version that was shown when it was written continues that one', async () => {
  const { run, load, seen } = setUp()
  await run([user('u1', 'One')])
  await run([user('u2', 'Two')])
  await run([user('u1b', 'One, edited')], { edit: 'u1' })
  // This page has not noticed.
  await run([user('u3', 'Three')], { after: 'u2' })
  expect(seen.at(-1)).toEqual(['One', 'Reply 1.', 'Two', 'Reply 2.', 'Three'])
  expect(words(await load())).toHaveLength(6)
})

test('T9 a message that is sent again, because its response was lost, shows its version again if another was shown meanwhile', async () => {
  const { run, load, seen } = setUp()
  await run([user('u1', 'One')])
  await run([user('u2', 'Two')], { after: 'u1' })
  await run([user('u2b', 'Two, edited')], { edit: 'u2', after: 'u1' })
  const last = (await load()).at(-1)?.id ?? ''
  // This page has not seen the reply, and shows its message behind the other version, as one that was not sent.
  const again = await run([user('u2', 'Two')], { after: 'u2b', last })
  expect(seen.at(-1)).toEqual(['One', 'Reply 1.', 'Two'])
  expect(again[1]?.type).toBe('MESSAGES_SNAPSHOT')
  expect(words(await load())).toEqual(['One', 'Reply 1.', 'Two', 'Reply 4.'])
})

test('T9 a message behind one whose response was lost continues the version of that one', async () => {
  const { run, load, seen } = setUp()
  await run([user('u1', 'One')])
  await run([user('u2', 'Two')], { after: 'u1' })
  await run([user('u2b', 'Two, edited')], { edit: 'u2', after: 'u1' })
  const last = (await load()).at(-1)?.id ?? ''
  const next = await run([user('u2', 'Two'), user('u3', 'Three')], { after: 'u2b', last })
  expect(seen.at(-1)).toEqual(['One', 'Reply 1.', 'Two', 'Reply 2.', 'Three'])
  expect(next[1]?.type).toBe('MESSAGES_SNAPSHOT')
  expect(words(await load())).toHaveLength(6)
})

test('T9 an answer counts on the version that is shown, also if its page sends a message again that is on another one', async () => {
  const { run, load, ran } = setUp([], [], asks)
  await run([user('u1', 'One')])
  await run([user('u2', 'Two')], { after: 'u1' })
  const request = requestIn(await run([user('u2b', 'Remove a.txt')], { edit: 'u2', after: 'u1' }))
  const last = (await load()).at(-1)?.id ?? ''
  await run([user('u2', 'Two')], { after: 'u2b', last }, approve(request))
  expect(ran).toEqual(['a.txt'])
  expect(words(await load()).slice(1, 3)).toEqual(['Remove a.txt', 'complete tool-result'])
})

test('T9 a client that sends its whole history adds nothing of a branch that is not shown', async () => {
  const { run, load, seen } = setUp()
  await run([user('u1', 'One')])
  await run([user('u1b', 'One, edited')], { edit: 'u1' })
  await run([user('u1', 'One'), user('u4', 'Four')])
  expect(seen.at(-1)).toEqual(['One, edited', 'Reply 2.', 'Four'])
  expect(words(await load())).toHaveLength(4)
})

test('T9 to edit or regenerate a message that the thread does not have continues the shown branch', async () => {
  const { run, load } = setUp()
  await run([user('u1', 'One')])
  await run([user('u2', 'Two')], { edit: 'never sent', after: 'u1' })
  await run([user('u3', 'Three')], { regenerate: 'u3', after: 'u2' })
  expect(words(await load())).toEqual(['One', 'Reply 1.', 'Two', 'Reply 2.', 'Three', 'Reply 3.'])
})

test('T9 PATCH shows a version, for its owner only; not while a run is open, and not an unknown one', async () => {
  const { agent, run, load } = setUp()
  await run([user('u1', 'One')])
  await run([user('u1b', 'One, edited')], { edit: 'u1' })
  const patch = async (messageId: string, subject = 'ann') => {
    const url = `http://x/?${new URLSearchParams({ threadId: 't', messageId })}`
    const response = await threadResponse(agent, new Request(url, { method: 'PATCH' }), {
      context: { subject },
    })
    return [response.status, await response.json()] as const
  }
  expect(await patch('u1', 'bob')).toMatchObject([404, { error: { code: 'thread-unknown' } }])
  expect(await patch('u9')).toMatchObject([404, { error: { code: 'thread-unknown' } }])
  expect(await patch('')).toMatchObject([400, { error: { code: 'invalid-request' } }])
  const [status, shown] = await patch('u1')
  expect([status, shown.messages[0].metadata.countersign.versions]).toEqual([200, ['u1', 'u1b']])
  expect(words(await load())).toEqual(['One', 'Reply 1.'])
  const key = { owner: 'ann', threadId: 't' }
  const open = { runId: 'open', holder: 'another process' }
  await agent.threads?.hold(key, open, 60_000)
  expect(await patch('u1b')).toMatchObject([409, { error: { code: 'thread-busy', runId: 'open' } }])
  await agent.threads?.release(key, open)
  const before = await agent.threads?.load(key)
  expect((await patch('u1'))[0]).toBe(200)
  expect(await agent.threads?.load(key)).toEqual(before)
})
