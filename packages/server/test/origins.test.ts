import { createServer } from 'node:http'
import { connect as connectHttp2, createServer as createHttp2 } from 'node:http2'
import { type AddressInfo, connect } from 'node:net'
import { answerResponse, grantsResponse } from '@countersign/server'
import { toNodeGrantsHandler } from '@countersign/server/node'
import { expect, onTestFinished, test } from 'vitest'
import { input, testAgent, user } from './support.js'

const context = { subject: 'ann' }

const own = ['http://chat.example.org', 'https://chat.example.org', 'HTTP://CHAT.example.org']
const others = [
  'null',
  'file://',
  'https://evil.example',
  'https://chat.example.org.evil.example',
  'https://chat.example.org@evil.example',
  'https://evil.example#chat.example.org',
  'https://evil.example/chat.example.org',
  'https://chat.example.org:8443',
  'https://chat.example.org, https://evil.example',
  '',
  'chat.example.org',
]

test.each([
  ...own.map((origin) => [origin, 200] as const),
  ...others.map((origin) => [origin, 403] as const),
])('a page of the origin "%s" gets %i', async (origin, status) => {
  const { agent } = testAgent([])
  const headers = { origin, host: 'chat.example.org' }
  const request = new Request('https://chat.example.org/?threadId=t', { headers })
  expect((await grantsResponse(agent, request, { context })).status).toBe(status)
})

test('a request without a host is nobody’s own: Origin: null over HTTP/1.0 is refused', async () => {
  const { agent } = testAgent([])
  const server = createServer(toNodeGrantsHandler(agent, { context: () => context })).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await new Promise((resolve) => server.once('listening', resolve))
  const ask = (head: string) =>
    new Promise<string>((resolve) => {
      let text = ''
      const socket = connect((server.address() as AddressInfo).port, '127.0.0.1', () =>
        socket.write(`GET /?threadId=t HTTP/1.0\r\n${head}\r\n`),
      )
      socket.on('data', (chunk) => {
        text += chunk
      })
      socket.on('close', () => resolve(text.split('\r\n')[0] ?? ''))
    })
  expect(await ask('Origin: null\r\n')).toContain('403')
  expect(await ask('Origin: file://\r\nHost: \r\n')).toContain('403')
  expect(await ask('')).toContain('200')
})

test('over HTTP/2 the host is that of the request, and other origins are refused', async () => {
  const { agent } = testAgent([])
  const handler = toNodeGrantsHandler(agent, { context: () => context })
  // what a handler reads of a request and writes to a response is the same in both
  const server = createHttp2(
    (request, response) => void Reflect.apply(handler, undefined, [request, response]),
  )
  server.listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const client = connectHttp2(url)
  onTestFinished(() => {
    client.destroy()
    server.close()
  })
  const ask = (origin: string) =>
    new Promise<unknown>((resolve) => {
      const stream = client.request({ ':path': '/?threadId=t', origin })
      stream.on('response', (headers) => resolve(headers[':status']))
      stream.resume()
    })
  expect(await ask(url)).toBe(200)
  expect(await ask('null')).toBe(403)
  expect(await ask('https://evil.example')).toBe(403)
})

test('a number that no double can hold is refused, not written down as null', async () => {
  const { agent } = testAgent([])
  const text = JSON.stringify({ ...input([user('go')]), resume: [] }).replace(
    '"resume":[]',
    '"resume":[{"interruptId":"a1","status":"resolved","payload":{"approved":true,"editedArgs":{"n":1e400}}}]',
  )
  const headers = { 'content-type': 'application/json' }
  const request = new Request('http://localhost/', { method: 'POST', headers, body: text })
  const response = await answerResponse(agent, request, { context })
  expect(response.status).toBe(400)
  expect(await response.json()).toMatchObject({
    error: { message: 'A number is beyond the range of a double.' },
  })
})
