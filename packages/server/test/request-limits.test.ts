import { failureWords } from '@countersign/client/ui'
import { CountersignError, type Message, type RunAgentInput } from '@countersign/core'
import {
  createAgent,
  handleChat,
  type Limits,
  type Model,
  memoryLedger,
  memoryThreads,
  readRunInput,
} from '@countersign/server'
import { expect, test } from 'vitest'

// Each limit of a request is an option. What exceeds it is refused with a code, and the refusal names the option and its value.

const model: Model = {
  id: 'test/model',
  async *stream() {
    yield { type: 'text-delta', delta: 'Well.' }
    yield { type: 'finish', reason: 'stop' }
  },
}

const agentWith = (limits: Limits, threads = memoryThreads()) =>
  createAgent({
    model,
    threads,
    limits,
    approvals: { secret: 'only for this test, 32 bytes long!', ledger: memoryLedger() },
    warn: () => {},
  })

let runs = 0
const requestOf = (more: Partial<RunAgentInput>) =>
  new Request('http://localhost/', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      ...{ threadId: 'limits', runId: `r${++runs}`, messages: [user('Hello')], tools: [], context: [] },
      ...{ protocolVersion: '1.0', ...more },
    }),
  })

let count = 0
const user = (content: string): Message => ({ id: `m${++count}`, role: 'user', content })
const calling = (...ids: string[]): Message => ({
  id: `m${++count}`,
  role: 'assistant',
  toolCalls: ids.map((id) => ({ id, type: 'function', function: { name: 'x', arguments: '{}' } })),
})
const answer = (interruptId: string) => ({
  interruptId,
  status: 'resolved' as const,
  payload: { approved: true },
})

const limits: readonly (readonly [keyof Limits, number, Partial<RunAgentInput>])[] = [
  ['bodyBytes', 1000, { messages: [user('x'.repeat(1000))] }],
  ['messages', 2, { messages: [user('1'), user('2'), user('3')] }],
  ['callsPerMessage', 2, { messages: [calling('a', 'b', 'c')] }],
  ['answers', 2, { resume: ['a', 'b', 'c'].map(answer) }],
  ['openCalls', 2, { messages: [calling('a', 'b'), calling('c')] }],
]

test.each(limits)(
  'T38 limits.%s: 413 names the option and its value, and the next request is served',
  async (name, max, tooMuch) => {
    const agent = agentWith({ [name]: max })
    const options = { context: { subject: 'ann' } }
    const refused = await handleChat(agent, requestOf(tooMuch), options)
    expect(refused.status).toBe(413)
    const { error } = await refused.json()
    expect(error).toMatchObject({ code: 'request-too-large', limit: `limits.${name}`, max })
    expect(error.message).toMatch(new RegExp(`at most ${max} .*\`limits\\.${name}\` of createAgent`))
    const served = await handleChat(agent, requestOf({}), options)
    expect(await served.text()).toContain('Well.')
    // The default takes it.
    await expect(readRunInput(requestOf(tooMuch))).resolves.toBeDefined()
    await expect(readRunInput(requestOf(tooMuch), { [name]: max })).rejects.toMatchObject({
      code: 'request-too-large',
    })
  },
)

test('T38 limits.depth and limits.idLength: 400 names the option', async () => {
  const deep = { forwardedProps: JSON.parse(`${'['.repeat(70)}${']'.repeat(70)}`) }
  const long = { threadId: 't'.repeat(300) }
  for (const [name, given] of [
    ['depth', deep],
    ['idLength', long],
  ] as const) {
    const refused = await handleChat(agentWith({}), requestOf(given))
    expect(refused.status).toBe(400)
    expect((await refused.json()).error).toMatchObject({
      code: 'invalid-request',
      message: expect.stringContaining(`limits.${name}`),
    })
    const served = await handleChat(agentWith({ depth: 100, idLength: 300 }), requestOf(given))
    expect(served.status).toBe(200)
    await served.text()
  }
})

test('T38 a thread that would exceed a limit of its store: 507, or 413 for a message that no thread could take, names the limit and its value, and nothing is stored', async () => {
  for (const [limit, max, text, status] of [
    ['maxMessages', 3, 'Hi', 507],
    ['maxMessageBytes', 300, 'x'.repeat(400), 413],
    ['maxThreadBytes', 500, 'x'.repeat(400), 507],
  ] as const) {
    const threads = memoryThreads({ [limit]: max })
    const agent = agentWith({}, threads)
    const options = { context: { subject: 'ann' } }
    await (await handleChat(agent, requestOf({}), options)).text()
    const before = await threads.load({ owner: 'ann', threadId: 'limits' })
    const messages = limit === 'maxMessages' ? [user(text), user(text)] : [user(text)]
    const refused = await handleChat(agent, requestOf({ messages }), options)
    expect(refused.status).toBe(status)
    expect((await refused.json()).error).toMatchObject({ code: 'thread-full', limit, max })
    expect(await threads.load({ owner: 'ann', threadId: 'limits' })).toEqual(before)
    expect((await handleChat(agent, requestOf({ threadId: 'another' }), options)).status).toBe(200)
  }
})

test('T38 a user who has as many threads as the store allows is told to remove one, not to start another', async () => {
  const agent = agentWith({}, memoryThreads({ maxThreadsPerOwner: 1 }))
  const options = { context: { subject: 'ann' } }
  await (await handleChat(agent, requestOf({}), options)).text()
  const refused = await handleChat(agent, requestOf({ threadId: 'another' }), options)
  const body = await refused.text()
  expect([refused.status, JSON.parse(body).error.message]).toEqual([
    507,
    'It would exceed maxThreadsPerOwner (1): remove a thread, or raise the limit, an option of the store. Nothing was stored.',
  ])
  const error = new CountersignError('http-status', 'refused', { status: 507, body })
  expect(failureWords(error)).toMatchObject({ title: 'You have too many chats' })
})

test('T38 a limit that is not a positive number, or out of its range, is refused by name', () => {
  for (const [given, option] of [
    [{ bodyBytes: 0 }, 'limits.bodyBytes'],
    [{ depth: 1001 }, 'limits.depth'],
    [{ idLength: 255 }, 'limits.idLength'],
    [{ unreadBytes: Number.NaN }, 'limits.unreadBytes'],
  ] as const)
    expect(() => agentWith(given)).toThrow(
      expect.objectContaining({ data: expect.objectContaining({ option }) }),
    )
})

test("T38 limits.callsPerMessage: a model's turn is cut off there, and the run continues", async () => {
  const warnings: string[] = []
  let steps = 0
  const many: Model = {
    id: 'test/model',
    async *stream() {
      if (++steps === 1)
        for (const id of ['a', 'b', 'c']) yield { type: 'tool-call', id, name: 'unknown', arguments: '{}' }
      else yield { type: 'text-delta', delta: 'Well.' }
      yield { type: 'finish', reason: steps === 1 ? 'tool_calls' : 'stop' }
    },
  }
  const agent = createAgent({
    model: many,
    limits: { callsPerMessage: 2 },
    warn: (text) => warnings.push(text),
  })
  const { events, text } = await agent.generate({ threadId: 't', runId: 'r', messages: [user('Go')] })
  expect(events.filter(({ type }) => type === 'TOOL_CALL_START')).toHaveLength(2)
  expect([text, warnings.some((warning) => warning.includes('limits.callsPerMessage'))]).toEqual([
    'Well.',
    true,
  ])
})
