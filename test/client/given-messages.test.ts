import type { UIMessage } from '@countersign/client'
import { scriptedConnection, text } from '@countersign/testing'
import { describe, expect, test } from 'vitest'
import { failOnUnhandledRejections, linesOf, openChat, openClient, saying } from './open-chat.js'

failOnUnhandledRejections()

// Messages that the application gives: setMessages() and initialMessages.

describe('F27 messages that the application gives', () => {
  const first: UIMessage = { id: 'old', role: 'user', parts: [{ type: 'text', text: 'before' }] }
  const careless: readonly [string, unknown][] = [
    ['a function that gives no messages', () => 'none'],
    ['nothing', undefined],
    ['a text', 'hello'],
    ['one message', first],
    ['a message without parts', [first, { id: 'm2', role: 'user', content: 'hello' }]],
    ['a message without an id', [first, { role: 'user', parts: [] }]],
    ['a hole', [first, null]],
    ['a part that is nothing', [{ ...first, parts: [undefined] }]],
  ]
  for (const [what, messages] of careless) {
    test(`F27 setMessages(${what}) is refused and changes nothing`, async () => {
      const server = scriptedConnection([[text('hi')]])
      const client = openClient({ connection: server, initialMessages: [first] })
      const before = structuredClone(client.getSnapshot())
      expect(() => client.setMessages(messages as readonly UIMessage[])).toThrow(
        expect.objectContaining({
          code: 'invalid-argument',
          message: expect.stringMatching(/each with id, role and parts.*Nothing was changed/),
        }),
      )
      expect(client.getMessageIds()).toEqual(['old'])
      expect(client.getSnapshot()).toEqual(before)
      await client.sendMessage('go on')
      expect(server.requests[0]?.messages.map(({ content }) => content)).toEqual(['before', 'go on'])
    })

    if (messages !== undefined)
      test(`F27 initialMessages: ${what} is refused by name`, () => {
        const initialMessages = messages as readonly UIMessage[]
        expect(() => openClient({ connection: scriptedConnection([]), initialMessages })).toThrow(
          expect.objectContaining({ code: 'invalid-option', data: { option: 'initialMessages' } }),
        )
      })
  }
})

test('F27 a failing setMessages keeps the messages, the open run, and what the next request says', async () => {
  const { client, person, server } = await openChat('in-process', [[text('Hello.')], [text('Again.')]])
  await person.sendMessage('go')
  const before = client.getSnapshot()
  for (const wrong of [() => [{ id: 'x' }], [{ id: 'x', role: 'user' }], undefined])
    expect(() => client.setMessages(wrong as never)).toThrow(
      expect.objectContaining({ code: 'invalid-argument' }),
    )
  expect(client.getSnapshot()).toBe(before)
  expect(client.getMessageIds()).toHaveLength(2)
  await person.sendMessage('and')
  expect(server.requests[1]?.messages).toHaveLength(3)
})

describe('a list of messages with one id twice', () => {
  const twice = [saying('a', 'first'), saying('b', 'between'), saying('a', 'second')]
  const refusal = expect.objectContaining({
    code: 'invalid-argument',
    message: expect.stringMatching(/messages\[2\].*"a".*messages\[0\]/),
    data: { at: 2, id: 'a', first: 0 },
  })

  test('is refused by `setMessages`, which changes nothing', () => {
    const client = openClient({ connection: scriptedConnection([]), initialMessages: [saying('old', 'old')] })
    expect(() => client.setMessages(twice)).toThrow(refusal)
    expect(linesOf(client)).toEqual(['user: old'])
  })

  test('is refused as `initialMessages`', () => {
    expect(() => openClient({ connection: scriptedConnection([]), initialMessages: twice })).toThrow(refusal)
  })
})
