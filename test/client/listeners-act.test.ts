import { type ChatClient, clientTool } from '@countersign/client'
import { call, finish, hold, text, textDelta, textStart, until } from '@countersign/testing'
import { expect, test } from 'vitest'
import * as z from 'zod'
import { callOf, failOnUnhandledRejections, openChat, saidBy } from './open-chat.js'

failOnUnhandledRejections()

/** A page that sends what waits in its own outbox as soon as the chat is ready. */
function sendWhenReady(client: ChatClient, outbox: string[]): void {
  client.subscribe(() => {
    const [next] = outbox
    if (client.getSnapshot().status !== 'ready' || next === undefined) return
    outbox.shift()
    void client.sendMessage(next)
  })
}

test('a listener that sends as soon as the chat is ready cannot come between the parts of regenerate', async () => {
  const { client, person, server, settle } = await openChat('in-process', [
    [textStart(), textDelta('half'), hold()],
    [text('whole')],
    [text('and more')],
  ])
  const outbox: string[] = []
  sendWhenReady(client, outbox)
  void person.sendMessage('one')
  await until(client, () => saidBy(client) === 'half')
  outbox.push('two')
  expect(await person.regenerate()).toEqual({ status: 'sent' })
  await settle()
  expect(server.requests).toHaveLength(3)
  expect([saidBy(client, 'user'), saidBy(client)]).toEqual(['one two', 'whole and more'])
})

test('a message that a listener sends when the chat is cleared belongs to the new conversation', async () => {
  const { client, person, settle } = await openChat('in-process', [
    [textStart(), textDelta('half'), hold()],
    [text('answer')],
  ])
  const outbox: string[] = []
  sendWhenReady(client, outbox)
  void person.sendMessage('one')
  await until(client, () => saidBy(client) === 'half')
  outbox.push('two')
  person.clear()
  await settle()
  expect([saidBy(client, 'user'), saidBy(client)]).toEqual(['two', 'answer'])
})

test('onFinish tells of the run that ended, also where a listener has opened the next one', async () => {
  const told: unknown[] = []
  const { client, person, settle } = await openChat(
    'in-process',
    [[text('first'), finish({ reason: 'length' })], [text('second')]],
    { onFinish: ({ reason, messages }) => void told.push([reason, messages.length]) },
  )
  const outbox: string[] = []
  sendWhenReady(client, outbox)
  outbox.push('two')
  await person.sendMessage('one')
  await settle()
  expect(told).toHaveLength(2)
  expect(told[0]).toEqual(['length', 2])
})

test('stop while resume starts client tools starts no other one, and nothing is sent', async () => {
  const ran: string[] = []
  const pick = clientTool({
    name: 'pick',
    description: 'Picks',
    input: z.object({}),
    execute: (_, { toolCallId }) => void ran.push(toolCallId),
  })
  const { client, person, server, settle } = await openChat('in-process', [
    [call('c1', 'pick', {}), call('c2', 'pick', {}), finish({ pending: ['c1', 'c2'] })],
    [text('never')],
  ])
  await person.sendMessage('go')
  client.setOptions({ tools: [pick], onToolCall: () => person.stop() })
  await person.retry()
  await settle()
  expect([ran, server.requests.length]).toEqual([[], 1])
  expect(callOf(client, 'c2').error).toMatchObject({ code: 'interrupted' })
})
