import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { createAgent, memoryLedger, memoryThreads, scriptedModel } from '@countersign/server'
import { toNodeHandler } from '@countersign/server/node'
import { expect, onTestFinished, test } from 'vitest'
import { input, say, user } from './support.js'

/** A server with one stored conversation of so many characters. */
async function serve(length: number) {
  const threads = memoryThreads()
  const agent = createAgent({
    ...{ model: scriptedModel(() => say('Well.')), threads, warn: () => {} },
    ...{ approvals: { ledger: memoryLedger() } },
  })
  await agent.generate(input([user('x'.repeat(length))]), { context: { subject: 'ada' } })
  const server = createServer(toNodeHandler(agent, { context: () => ({ subject: 'ada' }) }))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
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
