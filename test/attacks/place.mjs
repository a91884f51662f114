// An application under attack: an agent with tools that count, behind real HTTP on loopback. The header `x-user` stands for the
// application's own authentication; without it nobody is signed in. With `x-factor` there is a second factor too.
import { createServer } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { WebSocketServer } from 'ws'
import * as z from 'zod'
import { model } from './model.mjs'

const SECRET = 'countersign-attack-secret-0123456789abcdef'

const anything = z.looseObject({})
const whatever = { '~standard': { version: 1, vendor: 'attacks', validate: (value) => ({ value }) } }

/** What `buy` and `order` offer. */
const buying = [
  {
    ...{ id: 'acme', label: 'Buy from Acme, four times, 100 EUR at most', uses: 4 },
    where: [{ field: 'to', is: 'acme' }],
    budget: { field: 'amount', total: 100, unit: 'EUR', unitField: 'currency' },
  },
  {
    id: 'named',
    label: 'Buy for the team',
    where: [{ field: ['for', 'constructor', 'name'], is: 'Object' }],
  },
  { id: 'never', label: 'Never buy from Mallory', where: [{ field: 'to', is: 'mallory' }], decide: 'deny' },
]

/** @param version What the tool `file` is bound to. */
function tools({ ApprovalRequiredError, tool, toolDefinition }, record, version) {
  const counted = (name, { pause: ms, ...more } = {}) =>
    tool({
      name,
      description: `The tool ${name}`,
      input: anything,
      needsApproval: true,
      ...more,
      execute: async (input, { context }) => {
        record.run({ tool: name, input, user: context.subject })
        if (ms !== undefined) await pause(ms)
        return { done: name }
      },
    })
  return [
    counted('send'),
    counted('wipe'),
    counted('slow', { pause: 60 }),
    counted('hanging', { pause: 600_000 }),
    counted('brief', { expiresIn: 60 }),
    counted('pay', {
      input: z.object({ amount: z.number().max(100), note: z.string().optional() }),
      allowEdits: ['note'],
    }),
    counted('free', { input: whatever, parameters: { type: 'object' }, allowEdits: true }),
    counted('post', { scopes: ['once', 'session'], scopeKey: ({ to }) => String(to) }),
    counted('letter', { scopeKey: ({ to }) => String(to) }),
    counted('file', { bind: () => version.current }),
    counted('edit', {
      allowEdits: ['text'],
      preview: ({ text }) => ({ kind: 'text', text: `${version.current}: ${text}` }),
    }),
    counted('fixed', { input: whatever, parameters: { type: 'object' } }),
    counted('buy', { allowEdits: true, scopes: ['once', 'session'], mandates: () => buying }),
    counted('order', { mandates: () => buying }),
    counted('erase', {
      mandates: () => [
        { id: 'data', label: 'Erase what is in data', where: [{ field: 'path', under: '/srv/data' }] },
      ],
    }),
    counted('fetch', {
      mandates: () => [
        { id: 'v1', label: 'Fetch from v1', where: [{ field: 'url', under: 'https://example.org/v1' }] },
      ],
    }),
    // its scope key is no text
    counted('write', { scopes: ['once', 'session'], scopeKey: ({ to }) => ({ to }) }),
    // needs nobody's yes
    tool({
      name: 'note',
      description: 'Writes a note.',
      input: anything,
      execute: (input, { context }) => {
        record.note({ input, user: context.subject })
        return { decision: 'approve', approved: true }
      },
    }),
    // asks while it runs
    tool({
      name: 'survey',
      description: 'Asks the person something.',
      input: anything,
      execute: (_, { ask }) => ask({ message: 'Which one?', answer: anything }),
    }),
    // fails with what another service told it, word for word; or asks by itself, in the words of the call
    tool({
      name: 'relay',
      description: 'Passes something on.',
      input: anything,
      execute: (input, { approved, context }) => {
        if (approved) {
          record.run({ tool: 'relay', input, user: context.subject })
          return { done: 'relay' }
        }
        if (input.asks) throw new ApprovalRequiredError({ toolName: 'relay', ...input.asks })
        throw Object.assign(new Error(input.error.message), input.error)
      },
    }),
    toolDefinition({
      name: 'trash',
      description: 'Empties the bin.',
      input: anything,
      needsApproval: true,
    }).client(),
  ]
}

/**
 * Opens a server.
 *
 * @param options `ledger` is a ledger or `'stateless'`; `clock` answers the time; `port` where it listens; `limits` and `concurrency` are the
 * agent's; with `mustSignIn` whoever is not signed in gets 401; whatever else is an option of approvals.
 */
export async function openPlace(
  server,
  record,
  { ledger, clock = Date.now, port = 0, limits, concurrency, mustSignIn = false, ...approvals },
) {
  const version = { current: 'first' }
  const agent = server.createAgent({
    model: model(record),
    tools: tools(server, record, version),
    now: clock,
    warn: () => {},
    onError: (error) => record.error(error),
    runLog: server.memoryRunLog(),
    answerChannel: server.memoryAnswerChannel(),
    limits,
    concurrency,
    approvals: {
      secret: SECRET,
      ...approvals,
      ledger: ledger === 'stateless' ? server.statelessLedger({ acceptReplay: true }) : ledger,
    },
  })
  const context = ({ headers }) => {
    const { 'x-user': subject, 'x-factor': factor } = headers
    if (subject === undefined && mustSignIn)
      throw new server.CountersignError('invalid-request', 'Sign in.', { status: 401 })
    return {
      ...(subject !== undefined && { subject }),
      ...(factor !== undefined && { secondFactor: true }),
    }
  }
  // The same with stored conversations, in a store that answers only once it is told to.
  const rows = server.memoryThreads()
  const kept = server.createAgent({
    model: model(record),
    threads: {
      ...rows,
      load: async (...asked) => {
        record.wait()
        if (limits !== undefined) await record.answering
        return rows.load(...asked)
      },
    },
    warn: () => {},
    limits,
    approvals: { secret: SECRET, ledger: server.memoryLedger() },
  })
  const handlers = {
    '/chat': server.toNodeHandler(agent, { context, goOnFor: 2000 }),
    '/live': server.toNodeHandler(agent, { context, live: true }),
    '/answer': server.toNodeAnswerHandler(agent, { context }),
    '/preview': server.toNodePreviewHandler(agent, { context }),
    '/grants': server.toNodeGrantsHandler(agent, { context }),
    '/kept': server.toNodeHandler(kept, { context, goOnFor: 2000 }),
    '/kept/ai-sdk': onNode((request, known) =>
      server.handleAiSdkChat(kept, request, { context: context(known) }),
    ),
    '/kept/thread/stream': onNode((request, known) =>
      server.resumeAiSdkChat(kept, request, { context: context(known) }),
    ),
    '/ai-sdk': onNode((request, known) =>
      server.handleAiSdkChat(agent, request, { context: context(known) }),
    ),
  }
  const http = createServer((request, response) => {
    const { pathname } = new URL(request.url, 'http://localhost')
    handlers[pathname]?.(request, response).catch((error) => {
      record.crash(error)
      response.destroy()
    })
  })
  const sockets = new WebSocketServer({ server: http, ...server.socketServerLimits })
  sockets.on('connection', server.toSocketHandler(agent, { context }))
  await new Promise((resolve) => http.listen(port, '127.0.0.1', resolve))
  return {
    port: http.address().port,
    version,
    close() {
      for (const socket of sockets.clients) socket.terminate()
      http.closeAllConnections()
      return new Promise((resolve) => http.close(resolve))
    },
  }
}

/** A handler of the Fetch API on node:http. Whole bodies are enough for what is asked here. */
function onNode(handle) {
  return async (request, response) => {
    const body = Buffer.concat(await request.toArray())
    const asked = new Request(`http://${request.headers.host}${request.url}`, {
      method: request.method,
      headers: { 'content-type': request.headers['content-type'] ?? '' },
      ...(body.length > 0 && { body }),
    })
    const answered = await handle(asked, request)
    response.writeHead(answered.status, Object.fromEntries(answered.headers)).end(await answered.text())
  }
}
