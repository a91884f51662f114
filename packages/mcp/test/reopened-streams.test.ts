// A server has the client open its streams again (`retry`, event ids). How often, and until when, is for the client to say.
import { setTimeout as wait } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { answer, connect, hostile, stream } from './hostile-server.js'

test('a stream that its server ends at once is opened again, but not hundreds of times a second', async () => {
  const { url, counts } = await hostile({ opened: (response) => stream(response).end('retry: 0\n\n') })
  await connect(url)
  await wait(1500)
  // at once, after the first gap, and perhaps after the second
  expect(counts.opened).toBeGreaterThan(1)
  expect(counts.opened).toBeLessThanOrEqual(3)
})

test.each([
  ['a call that took too long', (id: string) => `id: ${id}\nretry: 0\ndata:\n\n`],
  [
    'a call that was answered with an error',
    (id: string) =>
      `id: ${id}\nretry: 300\ndata: {"jsonrpc":"2.0","id":${id},"error":{"code":-32602,"message":"no"}}\n\n`,
  ],
])('the stream of %s is not opened again', async (_, said) => {
  const { url, counts } = await hostile({
    called: (response, id) => stream(response).end(said(String(id))),
    opened: (response, token) =>
      token === undefined ? response.writeHead(405).end() : stream(response).end(said(token)),
  })
  const { look } = await connect(url, { timeout: 300 })
  const told = await look(5)
  expect(told.join()).toMatch(/took too long|refused/)
  const before = counts.opened
  await wait(1500)
  expect(counts.opened).toBe(before)
})

test('the stream of a call that took too long is closed, with what has arrived of it', async () => {
  let closed = 0
  const { url, counts } = await hostile({
    called: (response) => {
      response.on('close', () => closed++)
      stream(response).write(`data: ${'x'.repeat(100_000)}\n`)
    },
  })
  const { look } = await connect(url, { timeout: 300 })
  await look(5)
  expect(counts.called).toBe(5)
  await vi.waitFor(() => expect(closed).toBe(5))
})

test('no stream is opened again after dispose()', async () => {
  const { url, counts } = await hostile({
    opened: (response) => stream(response).end('id: e\nretry: 0\ndata:\n\n'),
  })
  const { mcp } = await connect(url)
  await vi.waitFor(() => expect(counts.opened).toBeGreaterThan(0))
  await mcp.dispose()
  const before = counts.opened
  await wait(1500)
  expect(counts.opened).toBe(before)
})

test('a call whose server ends its stream, to be asked again until there is a result (polling), gets the result', async () => {
  let polls = 0
  const { url } = await hostile({
    called: (response, id) => stream(response).end(`id: ${id}-0\nretry: 10\ndata:\n\n`),
    opened: (response, token) => {
      if (token === undefined) return response.writeHead(405).end()
      const id = Number(token.split('-')[0])
      const more =
        ++polls < 3 ? '' : JSON.stringify(answer(id, { content: [{ type: 'text', text: 'there' }] }))
      stream(response).end(`id: ${id}-${polls}\ndata: ${more}\n\n`)
    },
  })
  const { look } = await connect(url)
  expect(await look()).toEqual([expect.stringContaining('there')])
  expect(polls).toBe(3)
})
