// Every method of a store may fail, at any of its calls, with any error. No route answers that with an error that names no way out.
import {
  type Agent,
  grantsResponse,
  handleChat,
  type Ledger,
  memoryLedger,
  memoryThreads,
  previewResponse,
  type ThreadStore,
  threadResponse,
} from '@countersign/server'
import { describe, expect, test } from 'vitest'
import { answer, call, counted, input, requests, SECRET, say, testAgent, user } from './support.js'

const context = { subject: 'ann' }
const base = 'http://localhost/'

/** A store of which, once it is broken, one method fails. */
function breakable<Store extends object>(store: Store) {
  let broken: string | undefined
  const proxy = new Proxy(store, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name)
      if (typeof value !== 'function') return value
      return (...args: unknown[]) =>
        name === broken ? Promise.reject(new Error('10.0.0.7 refused')) : Reflect.apply(value, target, args)
    },
  })
  const fail = (method: string | undefined) => {
    broken = method
  }
  return { store: proxy, fail }
}

const post = (body: unknown) =>
  new Request(base, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
const of = (method: string, query: string, body?: unknown) =>
  new Request(`${base}?threadId=thread${query}`, {
    method,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })

async function world() {
  const threads = breakable<ThreadStore>(memoryThreads())
  const ledger = breakable<Ledger>(memoryLedger())
  const send = counted('send', {
    needsApproval: true,
    allowEdits: true,
    preview: () => ({ kind: 'text', text: 'x' }),
  })
  const warnings: unknown[] = []
  const { agent } = testAgent(
    ({ messages }) => (messages.at(-1)?.role === 'user' ? call(['c1', 'send', {}]) : say('ok')),
    {
      tools: [send.tool],
      threads: threads.store,
      approvals: { secret: SECRET, ledger: ledger.store },
      warn: (message, error) => void warnings.push(error ?? message),
      onError: () => {},
    },
  )
  const question = user('go')
  const { events } = await agent.generate(input([question]), { context })
  const [asked] = requests(events)
  if (asked === undefined) throw new Error('nothing was asked')
  return { agent, asked, question, threads, ledger, warnings }
}

type World = Awaited<ReturnType<typeof world>>

const routes: Readonly<Record<string, (w: World, agent: Agent) => Promise<Response>>> = {
  message: (_, agent) => handleChat(agent, post(input([user('more')])), { context }),
  answer: ({ asked }, agent) =>
    handleChat(agent, post(input([], { resume: [answer(asked, { approved: true })] })), { context }),
  edit: ({ question }, agent) =>
    handleChat(
      agent,
      post(input([user('other')], { forwardedProps: { countersign: { edit: question.id } } })),
      { context },
    ),
  thread: (_, agent) => threadResponse(agent, of('GET', ''), { context }),
  list: (_, agent) => threadResponse(agent, new Request(base), { context }),
  rename: (_, agent) => threadResponse(agent, of('PATCH', '', { title: 'x' }), { context }),
  version: ({ question }, agent) =>
    threadResponse(agent, of('PATCH', `&messageId=${question.id}`), { context }),
  remove: (_, agent) => threadResponse(agent, of('DELETE', ''), { context }),
  grants: (_, agent) => grantsResponse(agent, of('GET', ''), { context }),
  revoke: (_, agent) => grantsResponse(agent, of('DELETE', ''), { context }),
  preview: ({ asked }, agent) => {
    const { id: approvalId, token } = asked.approval
    const edited = { id: asked.toolCallId, name: 'send', arguments: '{}' }
    return previewResponse(
      agent,
      post({ threadId: 'thread', approvalId, token, call: edited, input: { to: 'b' } }),
      {
        context,
      },
    )
  },
}

const methodsOf = (store: object) =>
  Object.entries(store).flatMap(([name, value]) => (typeof value === 'function' ? [name] : []))
const methods = { threads: methodsOf(memoryThreads()), ledger: methodsOf(memoryLedger()) }

test('m1 both stores have methods', () => {
  expect(methods.threads).toContain('hold')
  expect(methods.ledger).toContain('issue')
})

describe.each(Object.entries(methods))('%s', (which, names) => {
  test.each(names.flatMap((method) => Object.keys(routes).map((route) => [method, route] as const)))(
    'm1 whose %s fails makes the route %s answer nothing worse than 503 ledger-unavailable, and it can be repeated',
    async (method, route) => {
      const w = await world()
      const store = which === 'threads' ? w.threads : w.ledger
      store.fail(method)
      const response = await routes[route]?.(w, w.agent)
      const text = (await response?.text()) ?? ''
      expect(text).not.toContain('10.0.0.7')
      expect(text).not.toContain('"internal"')
      if (response?.status !== 200 && response?.status !== 204) {
        expect([response?.status, JSON.parse(text)]).toMatchObject([
          503,
          { error: { code: 'ledger-unavailable' } },
        ])
        expect(w.warnings.length).toBeGreaterThan(0)
      }
      store.fail(undefined)
      if (response?.status !== 503) return
      const again = await routes[route]?.(w, w.agent)
      expect(again?.status).toBeLessThan(300)
      await again?.text()
    },
  )
})
