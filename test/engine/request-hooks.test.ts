// Every function that an application gives to a transport, and every hook that a request calls outside of a run, may never settle. The
// request ends when its client leaves, at `timeouts.run`, or when the server drains; it holds nothing afterwards.
import { createServer } from 'node:http'
import { handleAiSdkChat } from '@countersign/ai-sdk/server'
import { toolDefinition } from '@countersign/core'
import {
  type Agent,
  type AgentOptions,
  createAgent,
  grantsResponse,
  handleChat,
  memoryLedger,
  memoryThreads,
  previewResponse,
  serveSocket,
  threadResponse,
  tool,
} from '@countersign/server'
import { toNodeHandler } from '@countersign/server/node'
import { expect, test } from 'vitest'
import * as z from 'zod'
import { call, input, requests, SECRET, say, user } from '../../packages/server/test/support.js'
import { declaredOptions } from '../declared-options.js'
import { listening } from './listening.js'

// Runs that other tests of this process have abandoned count for their own subjects.
const subject = 'request-hooks'
const context = { subject }
const base = 'http://localhost/'
const text = { 'content-type': 'application/json' }

/** Something that waits for a hook. It fills `told` with the code that its client is told, if it is told one. */
interface Waiting {
  /** The client leaves. */
  leave(): void
  readonly ended: Promise<unknown>
}
type Door = (world: World) => Promise<Waiting> | Waiting

interface World {
  readonly agent: Agent
  /** Has the same stores, and no limit: for what came before. */
  readonly earlier: Agent
  /** Never settles. Before `hang` is called, the hooks of the agent do. */
  readonly hook: () => Promise<never>
  hang(): void
}

function world(options: Partial<AgentOptions>) {
  const warnings: string[] = []
  let isHanging = false
  let enter = () => {}
  const entered = new Promise<void>((resolve) => {
    enter = resolve
  })
  const hook = () => {
    enter()
    return new Promise<never>(() => {})
  }
  const maybe = async () => (isHanging ? hook() : undefined)
  const validated = {
    '~standard': {
      ...{ version: 1 as const, vendor: 'test' },
      validate: async (value: unknown) => (await maybe()) ?? { value },
    },
  }
  const send = tool({
    ...{
      name: 'send',
      description: 'Sends.',
      input: z.looseObject({}),
      needsApproval: true,
      allowEdits: true,
    },
    scopes: ['once', 'session'],
    preview: () => ({ kind: 'text', text: 'It sends.' }),
    execute: () => 'sent',
  })
  const show = toolDefinition({
    ...{ name: 'show', description: 'Shows.', parameters: { type: 'object' }, input: validated },
  }).client(() => 'shown')
  const settings: AgentOptions = {
    model: {
      id: 'test/m',
      async *stream({ messages }) {
        const { role, content } = messages.at(-1) ?? {}
        yield* role === 'user'
          ? call(['c1', JSON.stringify(content).includes('show') ? 'show' : 'send', {}])
          : say('Done.')
      },
    },
    tools: [send, show],
    threads: memoryThreads(),
    limits: { runs: { perOwner: 1 } },
    warn: (message) => void warnings.push(message),
    approvals: { secret: SECRET, ledger: memoryLedger(), policy: maybe, onAudit: maybe },
  }
  const agent = createAgent({ ...settings, ...options })
  const hang = () => {
    isHanging = true
  }
  return { agent, earlier: createAgent(settings), hook, hang, entered, warnings }
}

/** A request of the Fetch API whose client can leave. */
function asked(url: string, init: RequestInit, serve: (request: Request) => Promise<Response>): Waiting {
  const gone = new AbortController()
  const ended = serve(new Request(`${base}${url}`, { ...init, signal: gone.signal })).then((response) =>
    response.text(),
  )
  return { leave: () => gone.abort(), ended }
}

const post = (body: unknown): RequestInit => ({ method: 'POST', headers: text, body: JSON.stringify(body) })
const chat = () => post(input([user('go')]))

async function ask(agent: Agent, message = user('go')) {
  const result = await agent.generate(input([message]), { context })
  const [request] = requests(result.events)
  return { message, request }
}

const doors: Readonly<Record<string, Door>> = {
  'ChatOptions.prepare': ({ agent, hook }) =>
    asked('', chat(), (request) => handleChat(agent, request, { context, prepare: hook })),
  'AiSdkChatOptions.prepare': ({ agent, hook }) => {
    const body = { id: 't', messages: [{ id: 'u', role: 'user', parts: [{ type: 'text', text: 'go' }] }] }
    return asked('', post(body), (request) => handleAiSdkChat(agent, request, { context, prepare: hook }))
  },
  'NodeChatOptions.context': async ({ agent, hook }) => {
    const handler = toNodeHandler(agent, { context: hook })
    let end = (_: unknown) => {}
    const ended = new Promise<unknown>((resolve) => {
      end = resolve
    })
    const server = createServer((request, response) => void handler(request, response).then(end))
    const gone = new AbortController()
    const url = `http://${await listening(server)}/`
    const told = fetch(url, { ...chat(), signal: gone.signal }).then((response) => response.text())
    told.catch(() => {})
    return { leave: () => gone.abort(), ended: ended.then(() => (gone.signal.aborted ? '' : told)) }
  },
  'SocketOptions.context': ({ agent, hook }) => {
    const listeners = new Map<string, (event: { readonly data: unknown }) => void>()
    let isOpening = true
    let end = (_: unknown) => {}
    const ended = new Promise<unknown>((resolve) => {
      end = resolve
    })
    const socket = {
      readyState: 1,
      send: end,
      close: () => {},
      addEventListener: (type: string, listener: (event: never) => void) =>
        void listeners.set(type, listener as (event: { readonly data: unknown }) => void),
    }
    const from = () => {
      if (!isOpening) return hook()
      isOpening = false
      return context
    }
    serveSocket(agent, socket, new Request(base), { context: from })
    listeners.get('message')?.({ data: JSON.stringify({ type: 'run', input: input([user('go')]) }) })
    const leave = () => {
      listeners.get('close')?.({ data: undefined })
      end('')
    }
    return { leave, ended }
  },
  'a policy, for the preview of edits': async ({ agent, earlier, hang }) => {
    const { request } = await ask(earlier)
    if (request === undefined) throw new Error('nothing was asked')
    const edits = {
      ...{
        threadId: 'thread',
        approvalId: request.approval.id,
        token: request.approval.token,
        input: { to: 'team' },
      },
      call: { id: request.toolCallId, name: 'send', arguments: '{}' },
    }
    hang()
    return asked('', post(edits), (given) => previewResponse(agent, given, { context }))
  },
  'a schema, where an edit leaves a branch with an open call': async ({ agent, earlier, hang }) => {
    const { message } = await ask(earlier, user('show'))
    hang()
    const body = {
      ...input([user('go')]),
      runId: 'r2',
      forwardedProps: { countersign: { edit: message.id } },
    }
    return asked('', post(body), (request) => handleChat(agent, request, { context }))
  },
  'a schema, where another version is shown': async ({ agent, earlier, hang }) => {
    const question = user('show')
    await ask(earlier, question)
    const edit = { countersign: { edit: question.id } }
    await earlier.generate({ ...input([user('show again')]), runId: 'r2', forwardedProps: edit }, { context })
    hang()
    const url = `?threadId=thread&messageId=${question.id}`
    return asked(url, { method: 'PATCH' }, (request) => threadResponse(agent, request, { context }))
  },
  'the audit of a revocation': async ({ agent, earlier, hang }) => {
    const { request } = await ask(earlier)
    if (request === undefined) throw new Error('nothing was asked')
    const resume = [
      {
        interruptId: request.approval.id,
        status: 'resolved' as const,
        payload: { approved: true, scope: 'session' },
      },
    ]
    await earlier.generate({ ...input([]), runId: 'r2', resume }, { context })
    hang()
    return asked('?threadId=thread', { method: 'DELETE' }, (given) =>
      grantsResponse(agent, given, { context }),
    )
  },
}

const ways: Readonly<
  Record<
    string,
    {
      readonly options?: Partial<AgentOptions>
      readonly code?: string
      leave(agent: Agent, waiting: Waiting): unknown
    }
  >
> = {
  'when its client leaves': { leave: (_, waiting) => waiting.leave() },
  'at timeouts.run': { options: { timeouts: { run: 100 } }, code: 'run-timeout', leave: () => {} },
  'when the server drains': { code: 'shutting-down', leave: (agent) => void agent.drain({ within: 0 }) },
}

test.each(
  Object.entries(doors).flatMap(([name, open]) =>
    Object.entries(ways).map(([way, how]) => ({ name, open, way, ...how })),
  ),
)('M4 $name that never settles holds no request $way', async ({ name, open, options = {}, code, leave }) => {
  const here = world(options)
  const waiting = await open(here)
  await Promise.race([here.entered, waiting.ended])
  leave(here.agent, waiting)
  const told = await waiting.ended
  // Nobody waits for the audit trail of what is done.
  if (code !== undefined && name !== 'the audit of a revocation') expect(told).toContain(code)
  // All of the user's share is free, and nothing is open.
  const { signal } = new AbortController()
  const next = world({})
  const response = await handleChat(next.agent, new Request(base, { ...chat(), signal }), { context })
  expect([response.status, await response.text()]).toMatchObject([
    200,
    expect.stringContaining('RUN_FINISHED'),
  ])
  await here.agent.drain()
  const thread = await here.agent.threads?.load({ owner: subject, threadId: 'thread' })
  expect(thread?.run).toBeUndefined()
  // No error of the server's.
  expect(here.warnings.filter((message) => !/audit trail|outlives/.test(message))).toEqual([])
})

test('M4 every function that a transport takes is in this test', () => {
  const { optionsOf } = declaredOptions('server')
  const atOnce = ['ChatOptions.waitUntil', 'NodeChatOptions.waitUntil']
  /** The same code serves them. */
  const same = ['NodeChatOptions.prepare', 'NodeAnswerOptions.context', 'NodeSocketOptions.context']
  const given = ['ChatOptions', 'AnswerOptions', 'GrantsOptions', 'ThreadOptions', 'SocketOptions']
  const functions = [...given, 'NodeChatOptions', 'NodeAnswerOptions', 'NodeSocketOptions'].flatMap((of) =>
    optionsOf(of).flatMap(({ name, type }) => (/=>|ReadContext/.test(type) ? `${of}.${name}` : [])),
  )
  expect(
    functions.filter((name) => !(name in doors) && !atOnce.includes(name) && !same.includes(name)),
  ).toEqual([])
  expect(functions.length).toBeGreaterThan(5)
})
