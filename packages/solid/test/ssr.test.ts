import { ChatClient } from '@countersign/client'
import { scriptedConnection } from '@countersign/testing'
import { afterAll, expect, test, vi } from 'vitest'
import { createSolidServer } from './server.js'

const server = await createSolidServer()
afterAll(() => server.close())

test('S4.89 a server attaches and subscribes to nothing', () => {
  const client = new ChatClient({
    connection: scriptedConnection([]),
    initialMessages: [{ id: 'u', role: 'user', parts: [{ type: 'text', text: 'tidy <up>' }] }],
  })
  const used = [
    vi.spyOn(client, 'attach'),
    vi.spyOn(client, 'subscribe'),
    vi.spyOn(client, 'subscribeMessage'),
  ]
  const html = server.renderPages({
    use: { client },
    probe: { renders: new Map(), chat: undefined },
    pages: 2,
  })
  expect(html.match(/tidy &lt;up>/g)).toHaveLength(2)
  for (const spy of used) expect(spy).not.toHaveBeenCalled()
})
