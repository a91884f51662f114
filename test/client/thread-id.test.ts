import type { ChatClient } from '@countersign/client'
import { scriptedConnection, text } from '@countersign/testing'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { failOnUnhandledRejections, openClient } from './open-chat.js'

failOnUnhandledRejections()

/** Every change of a field of the snapshot, in order, as a subscriber sees it. */
function seen<T>(client: ChatClient, read: (client: ChatClient) => T): T[] {
  const values = [read(client)]
  client.subscribe(() => {
    const value = read(client)
    if (value !== values.at(-1)) values.push(value)
  })
  return values
}

describe('F51 the thread of a chat without a `threadId`', () => {
  test('F51 nothing random and no clock is read before something needs it', () => {
    const generateId = vi.fn(() => 'id')
    const spies = [
      vi.spyOn(crypto, 'randomUUID'),
      vi.spyOn(crypto, 'getRandomValues'),
      vi.spyOn(Math, 'random'),
      vi.spyOn(Date, 'now'),
    ]
    onTestFinished(() => void vi.restoreAllMocks())
    const connection = scriptedConnection([])
    for (const client of [openClient({ connection }), openClient({ connection, generateId })]) {
      client.getSnapshot()
      client.getServerSnapshot()
      client.subscribe(() => {})
    }
    for (const spy of [...spies, generateId]) expect(spy).not.toHaveBeenCalled()
  })

  test('F51 the id is made with the first request, is told then, and stays', async () => {
    const server = scriptedConnection([[text('hi')], [text('hi')]])
    const client = openClient({ connection: server })
    const threads = seen(client, (chat) => chat.getSnapshot().threadId)
    expect([client.getSnapshot().threadId, client.getServerSnapshot().threadId]).toEqual(['', ''])
    await client.sendMessage('one')
    await client.sendMessage('two')
    expect(threads).toEqual(['', client.threadId])
    expect(server.requests.map(({ threadId }) => threadId)).toEqual([client.threadId, client.threadId])
    expect(client.threadId).toMatch(/./)
  })

  test('F51 whoever asks a client for its thread gets the one that its requests name', async () => {
    const server = scriptedConnection([[text('hi')]])
    const client = openClient({ connection: server })
    const { threadId } = client
    expect(client.getSnapshot().threadId).toBe(threadId)
    await client.sendMessage('one')
    expect(server.requests[0]?.threadId).toBe(threadId)
  })
})
