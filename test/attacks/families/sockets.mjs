// Frames of a WebSocket that no page sends.
import { input, say } from '../client.mjs'

/** The opening of a socket, by a page of another site, with a frame that is not masked right behind it. */
const foreignSocket = [
  'GET /socket HTTP/1.1',
  'Host: 127.0.0.1',
  'Origin: https://evil.example',
  'Connection: Upgrade',
  'Upgrade: websocket',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==',
  '\r\n\u0001\u0001x',
].join('\r\n')

export const sockets = [
  {
    name: 'F2 a frame without a mask after a foreign origin',
    sends: 'the opening of a socket with a foreign Origin, and an unmasked frame in the same packet',
    code: 'invalid-request',
    check: 'errors of a socket',
    play: async ({ raw }, { record, breach, saw }) => {
      const { text } = await raw(foreignSocket)
      if (text.includes('"code":"invalid-request"')) saw('invalid-request')
      if (record.crashes.length > 0) breach('the process would have ended')
    },
  },
  {
    name: 'F6 an id that a reply would repeat',
    sends: 'an answer over a socket, with an id of a megabyte',
    code: 'invalid-request',
    check: 'ids of a frame',
    play: async ({ socket }, { record, breach }) => {
      const peer = socket({ 'x-user': 'ann' })
      await peer.opened
      peer.send({ type: 'answer', id: 'i'.repeat(1_000_000), resume: [] })
      const { code, id } = await peer.frame(({ type }) => type === 'error' || type === 'refused')
      record.refused(code)
      if (id !== undefined) breach('it was sent back')
      peer.close()
    },
  },
  {
    name: 'F6 a frame larger than a request may be',
    sends: 'a run over a socket, in a frame of 5 MB',
    code: 'closed with 1009',
    check: 'size of a frame',
    behind: ['size of a message'],
    play: async ({ socket }, { breach, saw }) => {
      const peer = socket({ 'x-user': 'ann' })
      await peer.opened
      peer.send({ type: 'run', input: input([say('go')], { state: { pad: 'x'.repeat(5_000_000) } }) })
      if (await peer.frame(({ type }) => type === 'end')) breach('it was served')
      else saw(`closed with ${await peer.closed}`)
      peer.close()
    },
  },
]
