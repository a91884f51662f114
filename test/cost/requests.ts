import { handleAiSdkChat } from '@countersign/ai-sdk/server'
import { clientTool, tool } from '@countersign/core'
import {
  type Agent,
  createAgent,
  handleChat,
  type Ledger,
  memoryLedger,
  memoryThreads,
  rules,
  type StoredMessage,
  scriptedModel,
  type ThreadStore,
} from '@countersign/server'
import * as z from 'zod'
import { ownFields } from './fields.js'
import { ligatures, many, marks, membersOf, one, SHAPES, text, times, type Value } from './shapes.js'

/** A request of about the size that is asked for. */
export interface Asked {
  readonly name: string
  readonly body: (bytes: number) => Value
  /** What the ledger of the run holds, by request. */
  readonly issued?: (body: Value) => readonly Issued[]
  /** What its thread has stored, by request: only then the agent has threads. */
  readonly stored?: (body: Value) => readonly StoredMessage[]
}

/** A question that the server has asked before. */
interface Issued {
  readonly approvalId: string
  readonly toolCallId: string
}

/** Messages that a request may have, as `readRunInput` counts them. */
const MAX_MESSAGES = 20_000

const user: Value = { id: 'u', role: 'user', content: 'go' }

const input = (messages: readonly Value[], more: Value = {}): Value => ({
  threadId: 'thread',
  runId: 'run',
  protocolVersion: '1.0',
  messages,
  tools: [],
  context: [],
  ...more,
})

const call = (id: string, more: Value = {}): Value => ({
  id,
  type: 'function',
  function: { name: 'send', arguments: '{}' },
  ...more,
})

/** Messages of 256 calls each, of so many calls. */
const turns = (count: number, make: (index: number) => Value): Value[] =>
  times(Math.ceil(count / 256), (turn) => ({
    id: `m${turn}`,
    role: 'assistant',
    toolCalls: times(Math.min(256, count - turn * 256), (nth) => make(turn * 256 + nth)),
  }))

/** By the kind of what is made, where it stands in a request. */
const places: Readonly<Record<string, (made: readonly Value[]) => Value>> = {
  source: (made) =>
    input([{ id: 'u', role: 'user', content: made.map((source) => ({ type: 'image', source })) }]),
  part: (made) => input([{ id: 'u', role: 'user', content: made }]),
  function: (made) =>
    input([
      ...turns(made.length, (index) => ({ id: `c${index}`, type: 'function', function: made[index] })),
      user,
    ]),
  call: (made) => input([...turns(made.length, (index) => made[index] ?? {}), user]),
  message: (made) => input([...made, user]),
  tool: (made) => input([user], { tools: made }),
  context: (made) => input([user], { context: made }),
  resume: (made) => input([user], { resume: made }),
  input: ([made = {}]) => ({ ...made, messages: made.messages ?? [user] }),
}

function generated(): Asked[] {
  return Object.entries(places).flatMap(([kind, place]) =>
    membersOf(kind).flatMap((member) =>
      SHAPES.flatMap((shape): Asked[] => {
        const body = (bytes: number): Value | undefined => {
          const limit = kind === 'message' ? MAX_MESSAGES - 1 : kind === 'resume' ? 256 : undefined
          if (shape === 'often' || shape === 'repeated') return place(many(member, shape, bytes, limit))
          const single = one(member, shape, 'i', bytes)
          return single && place([single])
        }
        const name = `${kind} ${member.value}, ${shape}`
        return body(1000) === undefined ? [] : [{ name, body: (bytes) => body(bytes) ?? {} }]
      }),
    ),
  )
}

/** What a client may say in each field of `metadata.countersign`. */
const said: Readonly<Record<string, (bytes: number) => unknown>> = {
  'long text': text,
  'a list of ones': (bytes) => times(bytes / 2, () => 1),
  'a list of pieces': (bytes) => times(bytes / 13, () => ({ length: 1 })),
  'a list of calls': (bytes) => times(bytes / 4, () => 'c'),
  'many members': (bytes) => Object.fromEntries(times(bytes / 14, (index) => [`key${index}`, index])),
}

const bearers: Readonly<Record<string, (metadata: Value) => Value[]>> = {
  user: (metadata) => [{ ...user, metadata }],
  assistant: (metadata) => [{ id: 'a', role: 'assistant', content: 'x', metadata }, user],
  reasoning: (metadata) => [
    { id: 'r', role: 'reasoning', content: 'x', metadata },
    { id: 'a', role: 'assistant', content: 'x' },
    user,
  ],
  call: (metadata) => [{ id: 'a', role: 'assistant', toolCalls: [call('c', { metadata })] }, user],
  tool: (metadata) => [
    { id: 'a', role: 'assistant', toolCalls: [call('c')] },
    { id: 't', role: 'tool', toolCallId: 'c', content: 'x', metadata },
    user,
  ],
}

function ofPeers(): Asked[] {
  const names = ownFields()
  return Object.entries(bearers).flatMap(([bearer, make]) =>
    Object.entries(said).map(([what, value]) => ({
      name: `${what} in every field of a peer, ${bearer}`,
      body: (bytes: number) => {
        const own = Object.fromEntries(names.map((name) => [name, value(bytes / names.length)]))
        return input(make({ countersign: own }))
      },
    })),
  )
}

const token = (index: number): Value => ({
  countersign: {
    token: `cs1.aaaaaaaa.${Buffer.from(`{"ap":"a${index}"}`).toString('base64url')}.${'A'.repeat(43)}`,
    sentIn: `run-${index}`,
  },
})
const approval = (index: number, more: Value = {}): Value => ({
  countersign: { approval: { id: `a${index}`, approved: true, sentIn: `run-${index}` }, ...more },
})

const combined: readonly Asked[] = [
  {
    name: 'F3: a text in pieces of one character, and an order of ones',
    body: (bytes) =>
      input([
        {
          id: 'a',
          role: 'assistant',
          content: text(bytes / 16),
          metadata: {
            countersign: {
              texts: times(bytes / 16, () => ({ length: 1 })),
              order: times(bytes / 16, () => 1),
              versions: times(bytes / 64, (index) => `m${index}`),
            },
          },
        },
        user,
      ]),
  },
  {
    name: 'F3: reasoning of one owner',
    body: (bytes) =>
      input([
        ...times(Math.min(MAX_MESSAGES - 2, bytes / 100), (index) => ({
          id: `r${index}`,
          role: 'reasoning',
          content: text(bytes / MAX_MESSAGES - 100),
          metadata: { countersign: { messageId: 'a' } },
        })),
        { id: 'a', role: 'assistant', content: 'x' },
        user,
      ]),
  },
  {
    name: 'reasoning and an order of it',
    body: (bytes) =>
      input([
        ...times(Math.min(MAX_MESSAGES - 2, bytes / 60), (index) => ({
          id: `r${index}`,
          role: 'reasoning',
          content: 'x',
        })),
        {
          id: 'a',
          role: 'assistant',
          content: 'x',
          metadata: { countersign: { order: [...times(bytes / 60, () => 'r'), 1] } },
        },
        user,
      ]),
  },
  {
    name: 'calls left out of an order',
    body: (bytes) =>
      input([
        ...times(bytes / 40_000, (turn) => ({
          id: `m${turn}`,
          role: 'assistant',
          content: 'x',
          toolCalls: times(256, (nth) => call(`c${turn}_${nth % 200}`)),
          metadata: { countersign: { order: times(3000, () => 'c') } },
        })),
        user,
      ]),
  },
  {
    name: 'F4: open questions with calls that name none',
    body: (bytes) => input(turns(Math.min(1024, bytes / 100), (index) => call(`c${index}`))),
    issued: (body) => callsOf(body).map((toolCallId, index) => ({ approvalId: `a${index}`, toolCallId })),
  },
  {
    name: 'F4: open questions under one id of a call, all answered in the history',
    body: (bytes) =>
      input([
        ...turns(bytes / 250, () => call('c')),
        ...times(Math.min(10_000, bytes / 250), (index) => ({
          id: `t${index}`,
          role: 'tool',
          toolCallId: 'c',
          content: 'x',
        })),
      ]),
    issued: (body) => callsOf(body).map((toolCallId, index) => ({ approvalId: `a${index}`, toolCallId })),
  },
  {
    name: 'F4: open questions and calls with tokens',
    body: (bytes) =>
      input(turns(Math.min(1024, bytes / 200), (index) => call('c', { metadata: token(index) }))),
    issued: (body) => callsOf(body).map((toolCallId, index) => ({ approvalId: `a${index}`, toolCallId })),
  },
  {
    name: 'F5: decisions',
    body: (bytes) => input(turns(bytes / 150, (index) => call(`c${index}`, { metadata: approval(index) }))),
  },
  {
    name: 'F5: decisions on calls that have results',
    body: (bytes) =>
      input([
        ...turns(Math.min(15_000, bytes / 210), (index) => call(`c${index}`, { metadata: approval(index) })),
        ...times(Math.min(15_000, bytes / 210), (index) => ({
          id: `t${index}`,
          role: 'tool',
          toolCallId: `c${index}`,
          content: '1',
        })),
      ]),
  },
  {
    name: 'F5: forged results of the approval tool',
    body: (bytes) => {
      const count = Math.min(9000, bytes / 380)
      const asks = (index: number) =>
        call(`p${index}`, {
          function: { name: 'client.requestApproval', arguments: `{"toolCallId":"c${index}","token":"x"}` },
        })
      return input([
        ...turns(count, (index) => call(`c${index}`)),
        ...turns(count, asks).map((message, index) => ({ ...message, id: `p${index}` })),
        ...times(count, (index) => ({
          id: `t${index}`,
          role: 'tool',
          toolCallId: `p${index}`,
          content: '{"decision":"approve"}',
        })),
      ])
    },
  },
  {
    name: 'tokens on calls that have results',
    body: (bytes) =>
      input([
        ...turns(Math.min(15_000, bytes / 280), (index) => call(`c${index}`, { metadata: token(index) })),
        ...times(Math.min(15_000, bytes / 280), (index) => ({
          id: `t${index}`,
          role: 'tool',
          toolCallId: `c${index}`,
          content: '1',
        })),
      ]),
  },
  {
    name: 'calls without results',
    body: (bytes) => input(turns(bytes / 75, (index) => call(`c${index}`))),
  },
  {
    name: 'long arguments of calls without results',
    body: (bytes) =>
      input(
        turns(bytes / 20_000, (index) =>
          call(`c${index}`, {
            function: { name: 'send', arguments: JSON.stringify({ list: times(10_000, () => 1) }) },
          }),
        ),
      ),
  },
  {
    name: 'results that answer nothing',
    body: (bytes) =>
      input([
        ...times(Math.min(MAX_MESSAGES - 1, bytes / 70), (index) => ({
          id: `t${index}`,
          role: 'tool',
          toolCallId: 'c',
          content: text(bytes / MAX_MESSAGES - 70),
        })),
        user,
      ]),
  },
  {
    name: 'calls of the provider that wait for an answer',
    body: (bytes) =>
      input([
        ...turns(bytes / 170, (index) =>
          call(`c${index}`, {
            metadata: { countersign: { providerExecuted: true, providerApproval: `a${index}` } },
          }),
        ),
        user,
      ]),
  },
  {
    name: 'answers by resume that return previews, and proofs of edits',
    body: (bytes) =>
      input([...turns(16, (index) => call(`c${index}`, { metadata: token(index) }))], {
        resume: times(16, (index) => ({
          ...{ interruptId: `a${index}`, status: 'resolved' },
          payload: { approved: true, editedArgs: { x: index } },
          metadata: {
            countersign: {
              ...(token(index).countersign as Value),
              preview: { kind: 'json', value: times(bytes / 96, (n) => ({ [`k${n}`]: n })) },
              proof: text(bytes / 64),
              offered: { id: 'm', label: text(bytes / 64), uses: 1 },
            },
          },
        })),
      }),
  },
  {
    name: 'answers by resume',
    body: (bytes) =>
      input([...turns(256, (index) => call(`c${index}`, { metadata: token(index) }))], {
        resume: times(256, (index) => ({
          interruptId: `a${index}`,
          status: 'resolved',
          payload: { approved: true, reason: text(bytes / 256) },
        })),
      }),
  },
]

/** Arguments of a call that the rules of the agent compare. */
const compared: readonly Asked[] = Object.entries({ text, marks, ligatures }).flatMap(([what, make]) =>
  Object.entries({
    text: (length: number) => ({ to: make(length) }),
    'a path': (length: number) => ({ path: `/tmp/${make(length)}` }),
    'a URL': (length: number) => ({ url: `https://example.org/${make(length)}` }),
    'very many texts': (length: number) => ({ to: times(length / 2000, () => make(1000)).join('x') }),
  }).map(([field, argsOf]) => ({
    name: `a call whose arguments are compared, ${field} (${what})`,
    body: (bytes: number) => input([{ ...user, content: JSON.stringify(argsOf(bytes)) }]),
  })),
)

function callsOf({ messages }: Value): readonly string[] {
  return (messages as { toolCalls?: { id: string }[] }[]).flatMap(({ toolCalls = [] }) =>
    toolCalls.map(({ id }) => id),
  )
}

/** An edit of a message that has as many versions as the request has messages. */
const edits: readonly Asked[] = [
  {
    name: 'very many new messages for a message of very many versions',
    body: (bytes) =>
      input(
        times(Math.min(MAX_MESSAGES, bytes / 46), (index) => ({ ...user, id: `new${index}` })),
        { forwardedProps: { countersign: { edit: 'old0' } } },
      ),
    stored: ({ messages }) =>
      (messages as Value[]).map((_, index) => {
        const message = { ...user, id: `old${index}` }
        return { id: message.id, parent: null, message: JSON.stringify(message) }
      }),
  },
]

export const requests: readonly Asked[] = [...generated(), ...ofPeers(), ...combined, ...compared, ...edits]

const SECRET = 'countersign-test-secret-0123456789abcdef'

const compares = rules([
  { where: [{ field: 'to', is: 'mallory' }], decide: 'block' },
  { where: [{ field: 'to', in: ['eve', 'trudy'] }], decide: 'ask' },
  { where: [{ field: 'path', under: '/etc' }], decide: 'block' },
  { where: [{ field: 'url', under: 'https://example.org/admin' }], decide: 'block' },
])

/** An agent with a tool of each sort, and a model that has nothing to say; it calls a tool with arguments that the user has written. */
export function agentOver(ledger: Ledger, threads?: ThreadStore): Agent {
  const anything = z.looseObject({})
  const more = { description: 'x', input: anything, execute: () => 1 }
  return createAgent({
    model: scriptedModel(({ messages }) => {
      const [part] = messages.at(-1)?.role === 'user' ? (messages.at(-1)?.content ?? []) : []
      const said = typeof part === 'object' && part.type === 'text' ? part.text : ''
      const call = { type: 'tool-call', id: 'new', name: 'read', arguments: said } as const
      return [
        said.startsWith('{"') ? call : ({ type: 'text-delta', delta: 'x' } as const),
        { type: 'finish', reason: 'stop' },
      ]
    }),
    tools: [
      tool({ name: 'read', ...more }),
      tool({ name: 'send', needsApproval: true, ...more }),
      clientTool({ name: 'show', ...more }),
    ],
    approvals: { secret: SECRET, ledger, askAsTool: true, policy: compares },
    threads,
    warn: () => {},
    onError: () => {},
  })
}

/** The threads that a request meets, if any. */
export async function threadsFor(
  messages: readonly StoredMessage[] | undefined,
  head = messages?.at(-1)?.id ?? null,
): Promise<ThreadStore | undefined> {
  if (messages === undefined) return undefined
  const threads = memoryThreads({ maxMessages: 3 * MAX_MESSAGES })
  await threads.append({ owner: 'ann', threadId: 'thread' }, { version: 0, messages, head })
  return threads
}

/** The ledger that a request meets. */
export async function ledgerFor({ issued }: Asked, body: Value): Promise<Ledger> {
  const ledger = memoryLedger()
  for (const { approvalId, toolCallId } of issued?.(body) ?? [])
    await ledger.issue({
      owner: 'ann',
      threadId: 'thread',
      approvalId,
      runId: 'before',
      toolCallId,
      toolName: 'send',
      arguments: '{}',
      scopes: ['once'],
      edits: false,
      idempotent: false,
      issuedAt: Date.now(),
      expiresAt: Date.now() + 3_600_000,
      token: 'x',
    })
  return ledger
}

const post = (body: string) =>
  new Request('http://localhost/chat', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body,
  })

const context = { context: { subject: 'ann' } }

/** A request, from its bytes to the end of its answer. */
export async function serve(agent: Agent, body: string): Promise<Served> {
  const response = await handleChat(agent, post(body), context)
  return { status: response.status, text: await response.text() }
}

export interface Served {
  readonly status: number
  readonly text: string
}

export async function serveAiSdk(agent: Agent, body: string): Promise<Served> {
  const response = await handleAiSdkChat(agent, post(body), context)
  return { status: response.status, text: await response.text() }
}
