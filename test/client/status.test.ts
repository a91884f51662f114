import { type ChatClient, clientTool } from '@countersign/client'
import type { AnyClientTool } from '@countersign/core'
import { call, gated, resolve, scriptedConnection, text, until } from '@countersign/testing'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { failOnUnhandledRejections, openClient, stateOf } from './open-chat.js'

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

const statusOf = (client: ChatClient) => client.getSnapshot().status

const locate = (execute: () => unknown, more: Partial<AnyClientTool> = {}): AnyClientTool => ({
  ...clientTool({ name: 'locate', description: 'Where', input: z.object({}), execute }),
  ...more,
})

describe('F29 the status', () => {
  test('F29 while a client tool works the chat is loading, so that there is something to stop', async () => {
    let found = (_: string) => {}
    const promise = new Promise<string>((done) => {
      found = done
    })
    const server = scriptedConnection([[call('c1', 'locate')], [text('You are in Lisbon.')]])
    const client = openClient({ connection: server, tools: [locate(() => promise)] })
    const loading = seen(client, (chat) => chat.getSnapshot().isLoading)
    const statuses = seen(client, statusOf)
    void client.sendMessage('where am I?')
    await until(client, () => stateOf(client, 'c1') === 'executing')
    expect([statusOf(client), client.getSnapshot().isLoading]).toEqual(['executing', true])
    found('Lisbon')
    await until(client, ({ messages, isLoading }) => messages.length > 2 && !isLoading)
    expect(loading).toEqual([false, true, false])
    expect(statuses).toEqual([
      'ready',
      'submitted',
      'streaming',
      'executing',
      'submitted',
      'streaming',
      'ready',
    ])
  })

  test('F29 stop() while a client tool works ends the loading', async () => {
    const server = scriptedConnection([[call('c1', 'locate')]])
    const client = openClient({ connection: server, tools: [locate(() => new Promise(() => {}))] })
    void client.sendMessage('where am I?')
    await until(client, () => stateOf(client, 'c1') === 'executing')
    client.stop()
    expect([statusOf(client), client.getSnapshot().isLoading]).toEqual(['ready', false])
  })

  test('F29 nobody sees `ready` between an answer and its request', async () => {
    const server = scriptedConnection([gated(1), [resolve(), text('Done.')]])
    const client = openClient({ connection: server })
    await client.sendMessage('tidy up')
    const statuses = seen(client, statusOf)
    await client.addToolApprovalResponse({ id: 'a1', approved: true })
    expect(statuses).toEqual(['awaiting-approval', 'submitted', 'streaming', 'ready'])
  })

  test('F29 nor between the result that the application gives and its request', async () => {
    const server = scriptedConnection([[call('c1', 'locate')], [text('Done.')]])
    const client = openClient({ connection: server })
    await client.sendMessage('where am I?')
    const statuses = seen(client, statusOf)
    await client.addToolResult({ toolCallId: 'c1', output: 'Lisbon' })
    expect(statuses).toEqual(['ready', 'submitted', 'streaming', 'ready'])
  })
})
