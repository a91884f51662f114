// A client that goes before its body has arrived has done nothing that the server's log should call an error.
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { handleChat } from '@countersign/server'
import { toNodeHandler } from '@countersign/server/node'
import { expect, onTestFinished, test } from 'vitest'
import { input, say, testAgent, user } from './support.js'

function agentWithWarnings() {
  const warnings: string[] = []
  const { agent } = testAgent([say('hi')], { warn: (message) => void warnings.push(message) })
  // What the making of an agent warns of is not the matter here.
  warnings.length = 0
  return { agent, warnings }
}

test('m5 a body that breaks off is answered with 400 invalid-request, and is no error of the server', async () => {
  const { agent, warnings } = agentWithWarnings()
  const body = new ReadableStream({
    pull(controller) {
      controller.error(new TypeError('terminated'))
    },
  })
  const headers = { 'content-type': 'application/json' }
  const init = { method: 'POST', headers, body, duplex: 'half' } as RequestInit
  const response = await handleChat(agent, new Request('http://localhost/', init))
  expect([response.status, await response.json()]).toMatchObject([
    400,
    { error: { code: 'invalid-request' } },
  ])
  expect(warnings).toEqual([])
})

test('m5 a client of node:http that closes its connection in the middle of a body leaves nothing, and is no error of the server', async () => {
  const { agent, warnings } = agentWithWarnings()
  let handled: Promise<void> | undefined
  const handler = toNodeHandler(agent)
  const server = createServer((request, response) => {
    handled = handler(request, response)
    request.once('data', () => socket.destroy())
  }).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  const text = JSON.stringify(input([user('go')]))
  const head = [
    'POST / HTTP/1.1',
    'host: localhost',
    'content-type: application/json',
    `content-length: ${text.length}`,
  ]
  socket.write(`${head.join('\r\n')}\r\n\r\n${text.slice(0, 20)}`)
  await once(server, 'request')
  await handled
  expect(warnings).toEqual([])
  await agent.drain()
})
