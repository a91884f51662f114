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

/** A thread in a store, as runs have left it. */
async function threadsWith(messages, key) {
  const threads = memoryThreads({ maxBytes: 4096 * MB, maxBytesPerOwner: 4096 * MB })
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

async function measure(bytes, rounds) {
  const key = { owner: 'ann', threadId: 't' }
  const messages = messagesOf(bytes)
  const threads = await threadsWith(messages, key)
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
  const agent = createAgent({ model, approvals, threads, warn: () => {} })
  const times = []
  const memories = []
  let size = 0
  for (let n = 0; n < rounds + 2; n++) {
    const body = await requestBody(messages, n)
    size = body.length
    gc()
    const held = process.memoryUsage().heapUsed
    const before = process.cpuUsage()
    called = (count) => {
      const { user, system } = process.cpuUsage(before)
      if (n < 2) return
      times.push((user + system) / 1000)
      memories.push(process.memoryUsage().heapUsed - held)
      if (count < messages.length) throw new Error(`the model got ${count} of ${messages.length} messages`)
    }
    const headers = { 'content-type': 'application/json' }
    const request = new Request('http://127.0.0.1/', { method: 'POST', headers, body })
    const text = await (await handleChat(agent, request, { context: { subject: 'ann' } })).text()
    const [, id] = /"TEXT_MESSAGE_START","messageId":"([^"]+)"/.exec(text) ?? []
    if (id === undefined || !text.includes('"type":"RUN_FINISHED"')) throw new Error(text.slice(-500))
    // The page has what it was sent: one that has not is sent the conversation.
    messages.push(nextMessage(n), { id, role: 'assistant', content: 'Yes.' })
  }
  return { size, ms: median(times), memory: median(memories) }
}

export async function run({ scale = 'full' } = {}) {
  const [short, long] = sizes[scale]
  const rounds = { tiny: 1, quick: 5, full: 15 }[scale]
  const small = await measure(short, rounds)
  const large = await measure(long, rounds)
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
    { name: `${nameOf(long)}: CPU time until the model is called`, value: large.ms, unit: 'ms' },
    { name: `${nameOf(long)}: the same for each MB`, value: large.ms / (long / MB), unit: 'ms' },
    {
      name: `${nameOf(long)}: memory of the run by then, besides the store`,
      value: large.memory / MB,
      unit: 'MB',
    },
  ]
}
