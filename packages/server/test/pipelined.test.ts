import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import { connect as connectHttp2, createServer as createHttp2 } from 'node:http2'
import { type AddressInfo, connect } from 'node:net'
import { createAgent, type Model, memoryLedger, memoryThreads, scriptedModel } from '@countersign/server'
import { toNodeHandler } from '@countersign/server/node'
import { expect, onTestFinished, test } from 'vitest'
import { input, say, user } from './support.js'

/** A handler for one stored conversation of so many characters. */
async function handlerOf(length: number) {
  const threads = memoryThreads()
  const agent = createAgent({
    ...{ model: scriptedModel(() => say('Well.')), threads, warn: () => {} },
    ...{ approvals: { ledger: memoryLedger() } },
  })
  await agent.generate(input([user('x'.repeat(length))]), { context: { subject: 'ada' } })
  return toNodeHandler(agent, { context: () => ({ subject: 'ada' }) })
}

async function listen(handler: RequestListener): Promise<number> {
  const server = createServer(handler)
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return (server.address() as AddressInfo).port
}

/** A server with one stored conversation of so many characters. */
async function serve(length: number) {
  const port = await listen(await handlerOf(length))
  /** Sends as many requests at once; resolves to the statuses of what comes back before the connection is closed, or is complete. */
  return async function ask(count: number): Promise<string[]> {
    const socket = connect(port, '127.0.0.1')
    onTestFinished(() => void socket.destroy())
    await once(socket, 'connect')
    const request = 'GET /?threadId=thread HTTP/1.1\r\nhost: l\r\n\r\n'
    const last = request.replace('host', 'connection: close\r\nhost')
    socket.write(request.repeat(count - 1) + last)
    let text = ''
    socket.on('data', (chunk) => {
      text += chunk
    })
    socket.on('error', () => {})
    await once(socket, 'close')
    return text.match(/HTTP\/1.1 \d+/g)?.map((line) => line.slice(-3)) ?? []
  }
}

test('a few requests that come at once on one connection are all answered', async () => {
  const ask = await serve(100)
  expect(await ask(16)).toEqual(Array(16).fill('200'))
})

test('a connection that sends many requests without reading is closed', async () => {
  const ask = await serve(100)
  expect((await ask(900)).length).toBeLessThan(17)
})

test('a short reply waits for the response before it, however long that takes', async () => {
  const model: Model = {
    id: 'test/slow',
    async *stream() {
      await new Promise((resolve) => setTimeout(resolve, 500))
      yield* say('Well.')
    },
  }
  const agent = createAgent({
    ...{ model, threads: memoryThreads(), warn: () => {}, limits: { stallTime: 50 } },
    ...{ approvals: { ledger: memoryLedger() } },
  })
  const port = await listen(toNodeHandler(agent, { context: () => ({ subject: 'ada' }) }))
  const socket = connect(port, '127.0.0.1')
  onTestFinished(() => void socket.destroy())
  const body = JSON.stringify(input([user('go')]))
  const type = `content-type: application/json\r\ncontent-length: ${body.length}\r\n`
  socket.write(`POST / HTTP/1.1\r\nhost: l\r\n${type}\r\n${body}PUT / HTTP/1.1\r\nhost: l\r\n\r\n`)
  let text = ''
  socket.on('data', (chunk) => {
    text += chunk
  })
  socket.on('error', () => {})
  await once(socket, 'close')
  expect(text.match(/HTTP\/1.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 405'])
})

/** Opens as many streams on one connection of HTTP/2; resolves to how many were refused, once all have been answered or refused. */
async function askOverHttp2(count: number, initialWindowSize: number): Promise<number> {
  const handler = await handlerOf(100)
  // what a handler reads of a request and writes to a response is the same in both
  const server = createHttp2((...both) => void Reflect.apply(handler, undefined, both))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const { port } = server.address() as AddressInfo
  const client = connectHttp2(`http://127.0.0.1:${port}`, { settings: { initialWindowSize } })
  onTestFinished(() => {
    client.destroy()
    server.close()
  })
  await once(client, 'remoteSettings')
  const ends = Array.from({ length: count }, () => {
    const stream = client.request({ ':path': '/?threadId=thread' })
    return new Promise<'answered' | 'refused'>((resolve) => {
      stream.on('response', () => resolve('answered'))
      stream.on('error', () => resolve('refused'))
    })
  })
  return (await Promise.all(ends)).filter((end) => end === 'refused').length
}

test('requests that come at once on one connection of HTTP/2 are all answered', async () => {
  expect(await askOverHttp2(100, 65_535)).toBe(0)
})

test('of the requests of a connection of HTTP/2 that reads nothing, those beyond 100 are refused', async () => {
  expect(await askOverHttp2(900, 0)).toBe(800)
})
