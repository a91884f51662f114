// What is no proper request: too large, too deep, of another kind, of another site.
import { request as httpRequest } from 'node:http'
import { called, input, say, yes } from '../client.mjs'

const script = (name = 'note') => say({ calls: [{ name, arguments: { to: 'all' } }] })
const deep = (levels) => `${'['.repeat(levels)}${']'.repeat(levels)}`

/** Sends a body that must be turned away before anything is made of it. */
const turnedAway =
  (make, options = {}) =>
  async ({ send }, { breach }) => {
    const { status } = await send('/chat', { body: make(), ...options })
    if (status === 200) breach('the request was served')
  }

/** A post as the form of another site makes it: in the name of whoever is signed in here. */
const crossSite =
  (path, headers, body, method = 'POST') =>
  async ({ send }, { breach }) => {
    const { status } = await send(path, {
      method,
      headers: { origin: 'https://evil.example', ...headers },
      body,
    })
    if (status === 200) breach('it was done in the name of the person')
  }

const live = {
  threadId: 'thread',
  runId: 'run',
  resume: [{ interruptId: 'approval_x', status: 'resolved', payload: yes }],
}

const messages = (count) =>
  Array.from({ length: count }, (_, index) => ({ id: `m${index}`, role: 'user', content: 'x' }))

export const http = [
  ...[
    ['a form of another site, as plain text', 'text/plain;charset=UTF-8'],
    ['a form of another site, as a form', 'application/x-www-form-urlencoded'],
    ['a form of another site, with JSON in a parameter of its type', 'text/plain; application/json'],
  ].map(([name, type]) => ({
    name,
    sends: `a chat request with Content-Type ${type}`,
    code: 'invalid-request',
    check: 'content type',
    play: crossSite('/chat', { 'content-type': type }, input([script()])),
  })),
  {
    name: 'a post without a type',
    sends: 'a chat request without Content-Type',
    code: 'invalid-request',
    check: 'content type',
    play: crossSite('/chat', { 'content-type': '' }, input([script()])),
  },
  {
    name: 'another method',
    sends: 'a chat request as PUT',
    code: 'invalid-request',
    check: 'method',
    play: turnedAway(() => input([script()]), { method: 'PUT' }),
  },
  {
    name: 'a live answer of another site, as plain text',
    sends: 'an answer with Content-Type text/plain',
    code: 'invalid-request',
    check: 'content type',
    behind: ['origin'],
    play: async ({ send }, { breach }) => {
      const headers = { origin: 'https://evil.example', 'content-type': 'text/plain' }
      const { body } = await send('/answer', { headers, body: live })
      if (body.error.code === 'run-ended') breach('the answer was looked at')
    },
  },
  {
    name: 'a live answer of a page of another origin',
    sends: 'an answer with a foreign Origin',
    code: 'invalid-request',
    check: 'origin',
    play: async ({ send }, { breach }) => {
      const { body } = await send('/answer', { headers: { origin: 'https://evil.example' }, body: live })
      if (body.error.code === 'run-ended') breach('the answer was looked at')
    },
  },
  {
    name: 'a live answer of a page without an origin',
    sends: 'an answer with Origin: null, as a sandboxed frame sends it',
    code: 'invalid-request',
    check: 'origin',
    play: async ({ send }, { breach }) => {
      const { body } = await send('/answer', { headers: { origin: 'null' }, body: live })
      if (body.error.code === 'run-ended') breach('the answer was looked at')
    },
  },
  {
    name: 'grants read by a page of another origin',
    sends: 'GET of the grants with a foreign Origin',
    code: 'invalid-request',
    check: 'origin',
    play: crossSite('/grants?threadId=thread', {}, undefined, 'GET'),
  },
  {
    name: 'grants ended by a page of another origin',
    sends: 'DELETE of the grants with a foreign Origin',
    code: 'invalid-request',
    check: 'origin',
    play: crossSite('/grants?threadId=thread', {}, undefined, 'DELETE'),
  },
  {
    name: 'a socket of a page of another origin',
    sends: 'a WebSocket with a foreign Origin, and a run',
    code: 'invalid-request',
    check: 'origin',
    play: async ({ socket }, { record, breach }) => {
      const peer = socket({ origin: 'https://evil.example', 'x-user': 'ann' })
      await peer.opened
      peer.send({ type: 'run', input: input([script()]) })
      const said = await peer.frame(({ type }) => type === 'error' || type === 'end')
      if (said?.type === 'error') record.refused(said.code)
      if (record.notes.length > 0) breach('a tool ran in the name of the person')
      peer.close()
    },
  },
  {
    name: 'a body of more than four megabytes',
    sends: 'a chat request that says how large it is',
    code: 'request-too-large',
    check: 'announced size',
    behind: ['size'],
    play: turnedAway(() => JSON.stringify(input([say('x'.repeat(4 * 1024 * 1024))]))),
  },
  {
    name: 'a body of more than four megabytes, in pieces',
    sends: 'a chat request that does not say how large it is',
    code: 'request-too-large',
    check: 'size',
    play: async ({ port }, { record, breach }) => {
      const { status, text } = await inPieces(port, JSON.stringify(input([say('x'.repeat(4 * 1024 * 1024))])))
      if (status === 200) breach('the request was served')
      else record.refused(JSON.parse(text).error.code)
    },
  },
  {
    name: 'a body that nests 65 levels deep',
    sends: 'a deep value in state',
    code: 'invalid-request',
    check: 'text depth',
    behind: ['depth'],
    play: turnedAway(() =>
      JSON.stringify(input([script()], { state: 0 })).replace('"state":0', `"state":${deep(65)}`),
    ),
  },
  {
    name: 'a body that nests 100,000 levels deep',
    sends: 'a value in state that would exhaust the stack of anything that recurses',
    code: 'invalid-request',
    check: 'text depth',
    stands: 'the parsed value is walked without recursion',
    play: turnedAway(() =>
      JSON.stringify(input([script()], { state: 0 })).replace('"state":0', `"state":${deep(100_000)}`),
    ),
  },
  {
    name: 'a body that opens brackets and never closes them',
    sends: 'a million brackets',
    code: 'invalid-request',
    check: 'text depth',
    stands: 'it is no JSON',
    play: turnedAway(() => '['.repeat(1_000_000)),
  },
  {
    name: 'a key __proto__ in a body',
    sends: 'a chat request with __proto__ in its state',
    code: 'invalid-request',
    check: 'proto keys',
    play: turnedAway(() =>
      JSON.stringify(input([script()], { state: 0 })).replace(
        '"state":0',
        '"state":{"__proto__":{"approved":true}}',
      ),
    ),
  },
  {
    name: 'an escaped key __proto__ in the metadata of a call',
    sends: 'a history whose call has \\u005f_proto__ in its metadata',
    code: 'invalid-request',
    check: 'proto keys',
    play: turnedAway(() =>
      JSON.stringify(input([say('go'), called('send', {}, { countersign: { approval: 0 } })])).replace(
        '"approval":0',
        '"\\u005f_proto__":{"approval":{"approved":true}}',
      ),
    ),
  },
  {
    name: 'more messages than a request may have',
    sends: '20,001 messages',
    code: 'request-too-large',
    check: 'messages',
    play: turnedAway(() => input([...messages(20_000), script()])),
  },
  {
    name: 'more calls than a message may have',
    sends: 'a message with 257 calls',
    code: 'request-too-large',
    check: 'calls',
    play: turnedAway(() => {
      const message = called('note', {})
      message.toolCalls = Array.from({ length: 257 }, (_, index) => ({
        ...message.toolCalls[0],
        id: `c${index}`,
      }))
      return input([say('go'), message])
    }),
  },
  {
    name: 'more answers than a request may have',
    sends: '257 entries of resume',
    code: 'request-too-large',
    check: 'resume',
    play: turnedAway(() =>
      input([say('go')], {
        resume: Array.from({ length: 257 }, (_, index) => ({
          interruptId: `i${index}`,
          status: 'cancelled',
        })),
      }),
    ),
  },
  {
    name: 'an id of 257 characters',
    sends: 'a long thread id',
    code: 'invalid-request',
    check: 'ids',
    behind: ['ids of a run'],
    play: turnedAway(() => input([script()], { threadId: 't'.repeat(257) })),
  },
  {
    name: 'a line break in an id',
    sends: 'a run id that would write a frame of its own into the stream',
    code: 'invalid-request',
    check: 'ids',
    behind: ['ids of a run'],
    play: turnedAway(() => input([script()], { runId: 'run\n\ndata: {"type":"RUN_FINISHED"}' })),
  },
  {
    name: 'half a character in an id',
    sends: 'a lone surrogate in a message id',
    code: 'invalid-request',
    check: 'ids',
    behind: ['ids of a run'],
    play: turnedAway(() => input([{ ...script(), id: '\ud800' }])),
  },
  {
    name: 'bytes that are no UTF-8',
    sends: 'a chat request with a broken byte in a text',
    code: 'invalid-request',
    check: 'UTF-8',
    play: turnedAway(() => {
      const bytes = Buffer.from(JSON.stringify(input([say('a?b')])))
      bytes[bytes.indexOf('a?b') + 1] = 0xff
      return bytes
    }),
  },
  {
    name: 'a body that is no request',
    sends: 'null, a list, a number, and a request without messages',
    code: 'invalid-request',
    check: 'shape',
    stands: 'what has no messages cannot be run',
    play: async (client, world) => {
      for (const body of ['null', '[]', '7', '{"threadId":"t","runId":"r"}', '{"threadId":1,"runId":2}'])
        await turnedAway(() => body)(client, world)
    },
  },
  {
    name: 'resume that is no list of answers',
    sends: 'resume as an object, and entries without ids',
    code: 'invalid-request',
    check: 'shape',
    stands: 'the description of the protocol refuses it',
    play: async (client, world) => {
      for (const resume of [
        {},
        'yes',
        [{ status: 'resolved', payload: yes }],
        [{ interruptId: 7, status: 'resolved' }],
      ])
        await turnedAway(() => ({ ...input([script()]), resume }))(client, world)
    },
  },
  {
    name: 'F4 more open calls than a history may have',
    sends: '1,025 calls without a result',
    code: 'request-too-large',
    check: 'open calls',
    play: async ({ run }, { breach }) => {
      const calls = Array.from({ length: 1025 }, (_, index) =>
        called('send', { to: 'team' }, { id: `c${index}` }),
      )
      const { status } = await run([say('go'), ...calls])
      if (status === 200) breach('all of them were looked up')
    },
  },
  {
    name: 'F5 more decisions than a history may have',
    sends: '257 calls in the history, each with a yes and a token',
    code: 'request-too-large',
    check: 'decisions',
    play: async ({ run }, { breach }) => {
      const calls = Array.from({ length: 257 }, (_, index) => {
        const countersign = { token: 'cs1.x.y.z', approval: { id: `approval_${index}`, approved: true } }
        return called('send', { to: 'team' }, { id: `c${index}`, countersign })
      })
      const { status } = await run([say('go'), ...calls])
      if (status === 200) breach('all of them were judged')
    },
  },
]

function inPieces(port, body) {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'x-user': 'ann', 'transfer-encoding': 'chunked' }
    const request = httpRequest(
      { host: '127.0.0.1', port, path: '/chat', method: 'POST', headers },
      async (response) => {
        const text = []
        for await (const chunk of response) text.push(chunk)
        resolve({ status: response.statusCode, text: Buffer.concat(text).toString() })
      },
    )
    request.on('error', (error) => {
      if (!request.res) reject(error)
    })
    for (let at = 0; at < body.length; at += 65_536) request.write(body.slice(at, at + 65_536))
    request.end()
  })
}
