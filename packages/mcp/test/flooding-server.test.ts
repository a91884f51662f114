// What a server may make this process hold. test/memory sees that a process survives it.
import { setTimeout as wait } from 'node:timers/promises'
import { expect, test, vi } from 'vitest'
import { answer, connect, hostile, stream } from './hostile-server.js'

const MIB = 1024 * 1024

test('the responses of a server that arrive at once have room for 32 MiB; beyond it a call fails, and says why', async () => {
  const goOn: (() => void)[] = []
  const { url } = await hostile({
    called: (response, id) => {
      const text = JSON.stringify(answer(id, { content: [{ type: 'text', text: 'x'.repeat(MIB) }] }))
      response.setHeader('content-type', 'application/json')
      // white space is not kept
      response.write(`${' '.repeat(2.9 * MIB)}${text.slice(0, -1)}`)
      goOn.push(() => response.end('}'))
    },
  })
  const other = await hostile({
    called: (response, id) =>
      response
        .setHeader('content-type', 'application/json')
        .end(JSON.stringify(answer(id, { content: [{ type: 'text', text: 'y'.repeat(MIB) }] }))),
  })
  const { look } = await connect(url)
  const looking = look(10)
  await vi.waitFor(() => expect(goOn).toHaveLength(10))
  await wait(500)
  // another server's is not concerned
  expect(await (await connect(other.url)).look()).toEqual([expect.stringContaining('yyy')])
  for (const go of goOn) go()
  const told = await looking
  const refused = told.filter((text) => text.includes('hold too much'))
  expect(refused.length).toBeGreaterThan(0)
  expect(refused[0]).toContain('may or may not have had an effect')
  expect(told.filter((text) => text.includes('xxx')).length).toBe(10 - refused.length)
  // all room was given back
  const again = look(2)
  await vi.waitFor(() => expect(goOn).toHaveLength(12))
  for (const go of goOn) go()
  expect((await again).join()).not.toContain('hold too much')
})

test('a response of more values than the SDK can check is a failure of its call', async () => {
  const content = (parts: string) => `{"jsonrpc":"2.0","id":ID,"result":{"content":[${parts}]}}`
  for (const [told, parts] of [
    ['too many values', '0,'.repeat(10_001)],
    ['x9x', Array.from({ length: 1000 }, (_, at) => `{"type":"text","text":"x${at}x"},`).join('')],
  ] as const) {
    const { url } = await hostile({
      called: (response, id) =>
        response
          .setHeader('content-type', 'application/json')
          .end(content(`${parts}{"type":"text","text":""}`).replace('ID', String(id))),
    })
    expect(await (await connect(url)).look()).toEqual([expect.stringContaining(told)])
  }
})

test('a long list of tools with long schemas, and a long structured result, are not too many values', async () => {
  const properties = Object.fromEntries(
    Array.from({ length: 20 }, (_, at) => [`field${at}`, { type: 'string', enum: ['a', 'b', 'c'] }]),
  )
  const annotations = { readOnlyHint: true, openWorldHint: false }
  const tools = ['look', ...Array.from({ length: 300 }, (_, at) => `tool${at}`)].map((name) => ({
    ...{ name, description: 'Looks', annotations },
    inputSchema: { type: 'object', ...(name !== 'look' && { properties }) },
  }))
  const rows = Array.from({ length: 100_000 }, (_, at) => at)
  const { url } = await hostile({
    tools,
    called: (response, id) =>
      response
        .setHeader('content-type', 'application/json')
        .end(JSON.stringify(answer(id, { content: [], structuredContent: { rows } }))),
  })
  const { mcp, look } = await connect(url)
  expect(mcp.tools).toHaveLength(301)
  expect(await look()).toEqual([expect.stringContaining('99999')])
})

test('a server that asks thousands of things at once is not answered thousands of times at once', async () => {
  const { url, counts } = await hostile({
    called: (response, id) => {
      const pings = 'data: {"jsonrpc":"2.0","id":1,"method":"ping"}\n\n'.repeat(2000)
      stream(response).end(`${pings}data: ${JSON.stringify(answer(id, { content: [] }))}\n\n`)
    },
  })
  const { look } = await connect(url)
  await look()
  await vi.waitFor(() => expect(counts.replies).toBeGreaterThan(0))
  await wait(500)
  expect(counts.replies).toBeLessThanOrEqual(64)
})
