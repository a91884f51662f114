import { ChatClient, stream } from '@countersign/client'
import type { RunAgentInput } from '@countersign/core'
import { event, hold, passMacrotasks, scriptedConnection, started, text, until } from '@countersign/testing'
import { expect, test } from 'vitest'
import { failOnUnhandledRejections, openClient, saidBy } from './open-chat.js'
import { half } from './raw-server.js'
import { startServer, stop, words } from './threads-server.js'

failOnUnhandledRejections()

// What stop() ends besides the stream, and what is stopped before it arrives or when no page shows it.

test('a request that was stopped before it arrived runs nothing, and adds no reply', async () => {
  let asked = 0
  const server = startServer(() => {
    asked++
    return [words('Late.'), stop]
  })
  const url = 'http://server.test/chat'
  const stopped = await server.handle(new Request(`${url}?threadId=t&runId=r1`, { method: 'DELETE' }))
  expect(stopped.status).toBe(204)
  const post = async (runId: string) => {
    const messages = [{ id: 'u1', role: 'user', content: 'Hi' }]
    const input = { threadId: 't', runId, messages, tools: [], context: [], state: {}, forwardedProps: {} }
    const headers = { 'content-type': 'application/json' }
    const request = new Request(url, { method: 'POST', headers, body: JSON.stringify(input) })
    return (await server.handle(request)).text()
  }
  expect(await post('r1')).not.toContain('Late.')
  expect(asked).toBe(0)
  // Only that run.
  expect(await post('r2')).toContain('Late.')
})

test('a message that a stop left in the queue is sent with retry()', async () => {
  const server = scriptedConnection(
    [[started(), event({ type: 'CUSTOM', name: 'x', value: 1 })], [text('Hi.')]],
    { otherwise: 'by hand' },
  )
  const client = openClient({ connection: server, threadId: 't' })
  const first = client.sendMessage('one')
  const { status } = await client.sendMessage('two')
  client.stop()
  await first
  await client.retry()
  expect(status).toBe('queued')
  expect(client.getSnapshot().queue).toEqual([])
})

test('F34 a source is not asked for more once the chat was stopped', async () => {
  let [pulled, afterStop] = [0, 0]
  let stopped = false
  const source = (run: RunAgentInput) => ({
    [Symbol.asyncIterator]: () => ({
      async next() {
        pulled++
        if (stopped) afterStop++
        // More than fits into one turn of the page, which gets its own then: the person stops the chat there.
        const [start, begin, delta] = half(run)
        return { done: false as const, value: [start, begin][pulled - 1] ?? delta }
      },
    }),
  })
  let turn: (() => void) | undefined
  const client = new ChatClient({ connection: stream((run) => source(run) as never) })
  const off = client.subscribe(() => {
    turn ??= () => {
      stopped = true
      client.stop()
    }
    if (saidBy(client) !== '' && !stopped) setTimeout(turn)
  })
  const sent = client.sendMessage('go')
  await until(client, () => stopped)
  off()
  await sent
  await passMacrotasks(4)
  expect([client.getSnapshot().isLoading, afterStop]).toEqual([false, 0])
})

test('F35 a chat that says so is stopped when no page shows it any more', async () => {
  const server = scriptedConnection([[text('hi'), hold()], [text('hi')]])
  const client = openClient({ connection: server, onDetach: 'stop' })
  const detach = client.attach()
  const sent = client.sendMessage('one')
  await server.request(1)
  // A page that is taken away and put back in one turn, as the strict mode does it, has not left.
  detach()
  const again = client.attach()
  await passMacrotasks(1)
  expect(client.getSnapshot().isLoading).toBe(true)
  again()
  expect(await sent).toEqual({ status: 'stopped' })
  expect(await client.sendMessage('two')).toEqual({ status: 'sent' })
})
