// One more message in a conversation that the server keeps: what the page sends, and what the server does until it calls the model.
import { serverHistory } from '@countersign/client/server-history'
import { createAgent, handleChat, memoryLedger, memoryThreads } from '@countersign/server'
import { prose } from '../material.mjs'
import { median } from '../measure.mjs'

const KB = 1024
const MB = 1024 * KB
const MESSAGE = 10 * KB

const sizes = { tiny: [50 * KB, 500 * KB], quick: [50 * KB, 50 * MB], full: [50 * KB, 50 * MB] }

function messagesOf(bytes) {
  return Array.from({ length: 2 * Math.round(bytes / MESSAGE / 2) }, (_, n) => {
    const content = prose(MESSAGE - 200, n).replace(/[^ -~]/g, 'x')
    return { id: `m${n}`, role: n % 2 === 0 ? 'user' : 'assistant', content }
  })
}

/** The same size, of turns with a call each: half of its bytes are the result. */
function callsOf(bytes) {
  return messagesOf(bytes / 2).flatMap(({ content }, n) => [
    { id: `u${n}`, role: 'user', content: content.slice(0, content.length / 2) },
    {
      id: `a${n}`,
      role: 'assistant',
      toolCalls: [{ id: `c${n}`, type: 'function', function: { name: 'find', arguments: `{"n":${n}}` } }],
    },
    { id: `r${n}`, role: 'tool', toolCallId: `c${n}`, content: JSON.stringify({ found: [content, n] }) },
    { id: `t${n}`, role: 'assistant', content: content.slice(content.length / 2) },
  ])
}

/** A thread in a store, as runs have left it. */
async function threadsWith(messages, key) {
  const threads = memoryThreads({ maxMessages: 20_000, maxBytes: 4096 * MB, maxBytesPerOwner: 4096 * MB })
  const stored = messages.map((message, n) => ({
    id: message.id,
    parent: messages[n - 1]?.id ?? null,
    message: JSON.stringify(message),
  }))
  let version = 0
  for (let at = 0; at < stored.length; at += 100) {
    const batch = stored.slice(at, at + 100)
    const result = await threads.append(key, { version, messages: batch, head: batch.at(-1).id })
    if (result.status !== 'appended') throw new Error(JSON.stringify(result))
    version = result.version
  }
  return threads
}

const nextMessage = (n) => ({ id: `next${n}`, role: 'user', content: 'And now?' })

/** The request that a page sends with one more message, by `serverHistory`. */
async function requestBody(messages, n) {
  let sent
  const connection = serverHistory({
    connect(input) {
      sent = input
      return []
    },
  })
  const stream = connection.connect({
    // Not a run that was posted before: it would be joined.
    ...{
      protocolVersion: '1.0',
      threadId: 't',
      runId: `r${messages.length}`,
      tools: [],
      context: [],
      state: {},
    },
    messages: [...messages, nextMessage(n)],
    forwardedProps: {},
  })
  await stream[Symbol.asyncIterator]().next()
  return JSON.stringify(sent)
}

/** A conversation that one page continues. `ask` resolves to the cost until the model is called. */
async function openConversation(messages) {
  const threads = await threadsWith(messages, { owner: 'ann', threadId: 't' })
  let called
  const model = {
    id: 'scripted',
    async *stream({ messages }) {
      called(messages.length)
      yield { type: 'text-delta', delta: 'Yes.' }
      yield { type: 'finish', reason: 'stop' }
    },
  }
  const approvals = { secret: 'x'.repeat(32), ledger: memoryLedger() }
  let requests = 0

  /** `isCold`: of a process that has just started, which has nothing of the conversation in memory. */
  async function ask({ isCold = false } = {}) {
    const n = requests++
    const body = await requestBody(messages, n)
    const agent = createAgent({
      model,
      approvals,
      threads: isCold ? { ...threads } : threads,
      warn: () => {},
    })
    const held = process.memoryUsage().heapUsed
    const before = process.cpuUsage()
    let cost
    called = (count) => {
      const { user, system } = process.cpuUsage(before)
      const memory = process.memoryUsage().heapUsed - held
      if (count < messages.length) throw new Error(`the model got ${count} of ${messages.length} messages`)
      cost = { ms: (user + system) / 1000, memory, size: body.length }
    }
    const headers = { 'content-type': 'application/json' }
    const request = new Request('http://127.0.0.1/', { method: 'POST', headers, body })
    const text = await (await handleChat(agent, request, { context: { subject: 'ann' } })).text()
    const [, id] = /"TEXT_MESSAGE_START","messageId":"([^"]+)"/.exec(text) ?? []
    if (id === undefined || !text.includes('"type":"RUN_FINISHED"')) throw new Error(text.slice(-500))
    // The page has what it was sent: one that has not is sent the conversation.
    messages.push(nextMessage(n), { id, role: 'assistant', content: 'Yes.' })
    return cost
  }
  return ask
}

/** What stays in memory of a conversation after its request, besides the store. */
async function memoryAfter(ask) {
  gc()
  const held = process.memoryUsage().heapUsed
  await ask()
  gc()
  return process.memoryUsage().heapUsed - held
}

/** The conversations take turns. No collection is forced between: a server forces none. */
async function inTurns(asks, rounds, options) {
  const costs = asks.map(() => [])
  for (let n = 0; n < rounds + 2; n++)
    for (const [at, ask] of asks.entries()) {
      const cost = await ask(options)
      if (n >= 2) costs[at].push(cost)
    }
  return costs.map((all) => ({
    ms: median(all.map(({ ms }) => ms)),
    memory: median(all.map(({ memory }) => memory)),
    size: all[0].size,
  }))
}

export async function run({ scale = 'full' } = {}) {
  const [short, long] = sizes[scale]
  const rounds = { tiny: 1, quick: 5, full: 25 }[scale]
  const asks = [
    await openConversation(messagesOf(short)),
    await openConversation(messagesOf(long)),
    await openConversation(callsOf(long)),
  ]
  const kept = await memoryAfter(asks[1])
  const [small, large, calls] = await inTurns(asks, rounds)
  const [coldSmall, coldLarge] = await inTurns(asks, rounds, { isCold: true })
  const nameOf = (bytes) => (bytes >= MB ? `${bytes / MB} MB` : `${bytes / KB} KB`)
  return [
    { name: `${nameOf(short)}: request with one more message`, value: small.size / KB, unit: 'KB' },
    {
      name: `${nameOf(long)}: request with one more message, relative to that`,
      value: large.size / small.size,
      unit: 'x',
      bound: 3,
      acceptance: ['T.39'],
    },
    { name: `${nameOf(short)}: CPU time until the model is called`, value: small.ms, unit: 'ms' },
    {
      name: `${nameOf(long)}: CPU time until the model is called, relative to that`,
      value: large.ms / small.ms,
      unit: 'x',
      bound: 3,
      acceptance: ['T.39'],
    },
    { name: `${nameOf(long)}: CPU time until the model is called`, value: large.ms, unit: 'ms' },
    { name: `${nameOf(long)}, half of it results of tools: the same`, value: calls.ms, unit: 'ms' },
    { name: `${nameOf(long)}: memory of the run by then`, value: large.memory / MB, unit: 'MB' },
    {
      name: `${nameOf(long)}: memory that stays after a run, besides the store`,
      value: kept / MB,
      unit: 'MB',
    },
    {
      name: `${nameOf(short)}, first request after a start: CPU time until the model is called`,
      value: coldSmall.ms,
      unit: 'ms',
    },
    {
      name: `${nameOf(long)}, first request after a start: CPU time until the model is called`,
      value: coldLarge.ms,
      unit: 'ms',
    },
  ]
}
