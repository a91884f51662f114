import { ChatClient, type Connection, fetchServerSentEvents } from '@countersign/client'
import { CountersignError } from '@countersign/core'
import { expect, test } from 'vitest'
import { finish, open, server, call as streamed } from './foreign-server.js'
import { failOnUnhandledRejections } from './open-chat.js'
import { frames, serve, story } from './raw-server.js'

failOnUnhandledRejections()

// Headers of requests, of answers too.

/** A server that takes answers only with the header that it wants now. */
function guarded() {
  const { connection, resume } = server(
    (input) => [...streamed('c1', 1), finish(input, ['a1', 'c1'])],
    (input) => [finish(input)],
  )
  const headers: (string | undefined)[] = []
  const checked: Connection = {
    connect(input, options) {
      const otp = options.headers['x-otp']
      headers.push(otp)
      if (input.resume && otp !== 'new') throw new CountersignError('http-status', '401', { status: 401 })
      return connection.connect(input, options)
    },
  }
  return { connection: checked, headers, resume }
}

test('the headers of a later message replace the outdated ones of an answer, also for its retry', async () => {
  const { connection, headers, resume } = guarded()
  const { client } = open({ connection })
  await client.sendMessage('x')
  const old = { headers: { 'x-otp': 'old' } }
  const answered = await client.addToolApprovalResponse({ id: 'a1', approved: true, options: old })
  expect(answered).toMatchObject({ status: 'failed' })
  await client.retry()
  expect(await client.sendMessage('go', { headers: { 'x-otp': 'newer' } })).toMatchObject({
    status: 'failed',
  })
  await client.retry()
  expect(headers).toEqual([undefined, 'old', 'old', 'newer', 'newer'])
  expect(await client.sendMessage(undefined, { headers: { 'x-otp': 'new' } })).toEqual({ status: 'sent' })
  expect(resume()).toEqual([[], ['a1 yes']])
})

test('an answer that is given after a message failed brings its own headers', async () => {
  const { connection, headers } = guarded()
  const { client } = open({ connection })
  await client.sendMessage('x', { headers: { 'x-otp': 'old' } })
  await client.addToolApprovalResponse({ id: 'a1', approved: true, options: { headers: { 'x-otp': 'new' } } })
  expect(headers).toEqual(['old', 'new'])
})

test('F30 headers may be a Headers object: of the connection, of a function, of the client', async () => {
  const { asked, url } = await serve((response, run) => response.end(frames(story(run))))
  const own = new Headers({ Authorization: 'Bearer one' })
  const clients: [Connection, object][] = [
    [fetchServerSentEvents(url, { headers: own }), {}],
    [fetchServerSentEvents(url, { headers: async () => own }), {}],
    [fetchServerSentEvents(url), { headers: own }],
  ]
  for (const [connection, options] of clients)
    await new ChatClient({ connection, ...options }).sendMessage('go')
  expect(asked.map(({ headers }) => headers.authorization)).toEqual(clients.map(() => 'Bearer one'))
})
