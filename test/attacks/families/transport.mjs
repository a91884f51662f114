// Requests that no page makes: headers that say two things, bodies that do not end, methods and encodings of other kinds.
import { gzipSync } from 'node:zlib'
import { entry, input, say, yes } from '../client.mjs'

const args = { to: 'team', n: 1 }
const script = () => say({ calls: [{ name: 'note', arguments: { to: 'all' } }] })

/** Sends an honest request in a dishonest way; it must be turned away before anything is made of it. */
const turnedAway =
  (body, ...options) =>
  async ({ send }, { breach, record }) => {
    for (const option of options) {
      const { status } = await send('/chat', { body: body(), ...option })
      if (status === 200) breach(`the request was served: ${JSON.stringify(option)}`)
    }
    if (record.notes.length > 0) breach('its tool ran')
  }

/** An answer to a genuine question, in a request that is none. */
const answeredBy =
  (...options) =>
  async ({ ask, send }) => {
    const { asked, history } = await ask('send', args)
    for (const option of options)
      await send('/chat', { body: input(history, { resume: [entry(asked, yes)] }), ...option })
  }

const typed = (type) => ({ headers: { 'content-type': type } })
const length = (text) => Buffer.byteLength(text)

/** A whole request as bytes; `lines` are its headers beside those that every request has. */
const message = (body, lines, line = 'POST /chat HTTP/1.1') =>
  [line, 'Host: 127.0.0.1', 'Content-Type: application/json', 'x-user: ann', ...lines, '', body].join('\r\n')

/** Sends bytes; no tool may run because of them. */
const unheard = (make, said) => async (client, world) => {
  const { status } = await client.raw(make(JSON.stringify(input([script()]))), said)
  if (world.record.notes.length > 0) world.breach('the tool ran')
  else world.saw(status === 0 || status >= 400 ? 'nothing ran' : `HTTP ${status}`)
}

/** The beginning of a chat request: `body` is all that comes of the `length` bytes that it announces. */
const unfinished = (body, { length = 4_000_000, user = 'x-user: ann\r\n' } = {}) =>
  `POST /chat HTTP/1.1\r\nHost: 127.0.0.1\r\n${user}Content-Type: application/json\r\nContent-Length: ${length}\r\n\r\n${body}`

export const transport = [
  {
    name: 'a type that only begins like JSON',
    sends: 'chat requests as jsonp, json5, problem+json, x-ndjson, two types in one header',
    code: 'invalid-request',
    check: 'content type',
    play: turnedAway(
      () => input([script()]),
      ...[
        'application/jsonp',
        'application/json5',
        'application/problem+json',
        'application/x-ndjson',
        'application/json, text/plain',
        'text/plain, application/json',
        'multipart/form-data; boundary=application/json',
        ';application/json',
      ].map(typed),
    ),
  },
  {
    name: 'a body in another encoding',
    sends: 'a chat request in UTF-16, announced as such',
    code: 'invalid-request',
    check: 'UTF-8',
    stands: 'it is no JSON',
    play: turnedAway(
      () => Buffer.from(JSON.stringify(input([script()])), 'utf16le'),
      typed('application/json; charset=utf-16'),
      typed('application/json'),
    ),
  },
  {
    name: 'a compressed body',
    sends: 'a chat request in gzip, announced as such',
    code: 'invalid-request',
    check: 'UTF-8',
    stands: 'nothing is unpacked, and it is no JSON',
    play: turnedAway(
      () => gzipSync(JSON.stringify(input([script()]))),
      { headers: { 'content-encoding': 'gzip' } },
      { headers: { 'content-encoding': 'deflate, gzip' } },
    ),
  },
  {
    name: 'a body with something behind it',
    sends: 'a chat request with a second one, a null byte, or a bracket behind it',
    code: 'invalid-request',
    check: 'shape',
    stands: 'what is more than one value is no JSON',
    play: async (client, world) => {
      const text = JSON.stringify(input([script()]))
      for (const rest of [text, '\u0000', '}', '\ufeff', '//', ',{}'])
        await turnedAway(() => text + rest, {})(client, world)
    },
  },
  {
    name: 'an answer with other methods',
    sends: 'a genuine yes by PUT, PATCH, DELETE, OPTIONS and HEAD',
    code: 'invalid-request',
    check: 'method',
    play: answeredBy(...['OPTIONS', 'PUT', 'PATCH', 'DELETE', 'HEAD'].map((method) => ({ method }))),
  },
  {
    name: 'an answer by GET, with a word for its method',
    sends: 'a genuine yes as GET with X-HTTP-Method-Override',
    code: 'invalid-request',
    check: 'method',
    play: answeredBy({ method: 'GET', headers: { 'x-http-method-override': 'POST' } }),
  },
  {
    name: 'a live answer and a grant by other methods',
    sends: 'GET and PUT of an answer, POST and PUT of a grant',
    code: 'invalid-request',
    check: 'method',
    stands: 'the route of the grants knows two methods',
    play: async ({ send }, { breach }) => {
      const resume = [{ interruptId: 'x', status: 'resolved', payload: yes }]
      for (const method of ['GET', 'PUT'])
        await send('/answer', { method, body: { threadId: 'thread', runId: 'r', resume } })
      for (const method of ['POST', 'PUT']) {
        const body = { threadId: 'thread', toolName: 'send', approved: true }
        const { status } = await send('/grants?threadId=thread', { method, body })
        if (status === 200) breach('a grant was made')
      }
    },
  },
  {
    name: 'grants ended with an empty id',
    sends: 'DELETE of the grants with id= and with two ids',
    code: 'invalid-request',
    check: 'ids',
    stands: 'no grant has that id',
    executions: 1,
    play: async ({ ask, answer, send }, { breach }) => {
      await answer(await ask('post', { to: 'team' }), { ...yes, scope: 'session' })
      for (const query of ['id=', `id=${'x'.repeat(300)}`, 'id=&id=all'])
        await send(`/grants?threadId=thread&${query}`, { method: 'DELETE' })
      const { body } = await send('/grants?threadId=thread', { method: 'GET' })
      if (body.grants.length !== 1) breach('the grant is gone')
    },
  },
  {
    name: 'ids beyond all measure',
    sends: 'answers to ids of 257 characters and of a megabyte, with line breaks, with half a character',
    code: 'invalid-request',
    check: 'ids',
    play: async ({ send }, { breach }) => {
      for (const interruptId of ['', 'a'.repeat(257), 'a'.repeat(1_000_000), 'a\nb', '\u0000', '\ud800']) {
        const resume = [{ interruptId, status: 'resolved', payload: yes }]
        const { status } = await send('/chat', { body: input([say('go')], { resume }) })
        if (status === 200) breach(`an id of ${interruptId.length} characters was taken`)
      }
    },
  },
  {
    name: 'a place in a run that is none',
    sends: 'Last-Event-ID with a negative, a broken and an enormous number',
    code: 'invalid-request',
    check: 'event ids',
    play: async ({ run, send }, { breach }) => {
      await run([say('hello')], { runId: 'run_mine' })
      const query = '/chat?threadId=thread&runId=run_mine'
      for (const place of [
        'run_mine:-1',
        'run_mine:1e3',
        'run_mine: 1',
        'run_mine:',
        'run_mine:1:1',
        'other:1',
      ]) {
        const { status } = await send(query, { method: 'GET', headers: { 'last-event-id': place } })
        if (status === 200) breach(`${place} was a place`)
      }
    },
  },
  {
    name: 'a number that no double can hold',
    sends: 'an edit with 1e400, which would be written down as null',
    code: 'invalid-request',
    check: 'numbers of a request',
    play: async ({ ask, send }) => {
      const { asked, history } = await ask('free', args)
      const body = input(history, { resume: [entry(asked, { ...yes, editedArgs: { n: 0 } })] })
      await send('/chat', {
        body: JSON.stringify(body).replace('"editedArgs":{"n":0}', '"editedArgs":{"n":1e400}'),
      })
    },
  },
  {
    name: 'the parts of every object in a body',
    sends: 'constructor.prototype in state, metadata and payload',
    code: 'nothing changed',
    check: 'proto keys',
    stands: 'nothing out of a request is merged into anything',
    play: async ({ ask, run }, { saw, breach }) => {
      const evil = { constructor: { prototype: { approved: true, needsApproval: false, subject: 'ann' } } }
      const { asked, history } = await ask('send', args)
      const spoilt = history.map((one) => ({ ...one, metadata: evil }))
      await run(spoilt, {
        state: evil,
        forwardedProps: evil,
        resume: [{ ...entry(asked, evil), metadata: { countersign: evil } }],
      })
      if ({}.approved !== undefined || Object.prototype.needsApproval !== undefined)
        breach('every object says yes')
      else saw('nothing changed')
    },
  },
  {
    name: 'an origin that only looks like ours',
    sends: 'answers of pages whose origins hold our own host somewhere',
    code: 'invalid-request',
    check: 'origin',
    play: async ({ send, port }, { breach }) => {
      const own = `127.0.0.1:${port}`
      const origins = [
        `http://${own}.evil.example`,
        `http://${own}@evil.example`,
        `http://evil.example#${own}`,
        `http://evil.example/${own}`,
        'http://127.0.0.1:1',
        `http://${own}, http://evil.example`,
        'file://',
        own,
      ]
      const body = {
        threadId: 'thread',
        runId: 'run',
        resume: [{ interruptId: 'x', status: 'resolved', payload: yes }],
      }
      for (const origin of origins) {
        const { status } = await send('/answer', { headers: { origin }, body })
        if (status !== 403) breach(`${origin} may answer`)
      }
    },
  },
  {
    name: 'a page without an origin, to a server without a name',
    sends: 'HTTP/1.0 without Host, with Origin: null',
    code: 'invalid-request',
    check: 'origin',
    play: async ({ raw }, { breach }) => {
      const { status } = await raw(
        'GET /grants?threadId=thread HTTP/1.0\r\nOrigin: null\r\nx-user: ann\r\n\r\n',
      )
      if (status === 200) breach('it reads the grants of ann')
    },
  },
  {
    name: 'a body of two lengths',
    sends: 'a chat request with Content-Length and with chunks, and with two lengths',
    code: 'nothing ran',
    check: 'announced size',
    stands: 'node:http refuses what could be read in two ways',
    play: async (client, world) => {
      const chunked = (body) => `${length(body).toString(16)}\r\n${body}\r\n0\r\n\r\n`
      await unheard((body) => message(chunked(body), ['Content-Length: 5', 'Transfer-Encoding: chunked']))(
        client,
        world,
      )
      await unheard((body) => message(body, [`Content-Length: ${length(body)}`, 'Content-Length: 5']))(
        client,
        world,
      )
      await unheard((body) => message(body, ['Content-Length: -1']))(client, world)
    },
  },
  {
    name: 'a request inside the body of another',
    sends: 'a request that is turned away, with a whole chat request for its body',
    code: 'nothing ran',
    check: 'content type',
    stands: 'a body that was not read ends its connection',
    play: unheard((body) => {
      const hidden = message(body, [`Content-Length: ${length(body)}`])
      return message(hidden, [`Content-Length: ${length(hidden)}`]).replace('application/json', 'text/plain')
    }),
  },
  {
    name: 'a body that never ends',
    sends: 'a whole chat request in chunks without the last one, and then silence',
    code: 'nothing ran',
    check: 'size',
    stands: 'a body is acted on once it has ended',
    play: unheard(
      (body) => message(`${length(body).toString(16)}\r\n${body}\r\n`, ['Transfer-Encoding: chunked']),
      {
        hangUpAfter: 300,
      },
    ),
  },
  {
    name: 'a body that is cut off',
    sends: 'half of a chat request, and the end of the connection',
    code: 'nothing ran',
    check: 'shape',
    stands: 'a body is acted on once it has ended',
    play: unheard((body) => message(body.slice(0, -20), [`Content-Length: ${length(body)}`]), {
      hangUpAfter: 100,
    }),
  },
  {
    name: 'a body byte by byte',
    sends: 'a chat request that arrives slowly, and an answer of somebody else meanwhile',
    code: 'approval-not-yours',
    check: 'oh',
    behind: ['row owner and thread'],
    play: async (client) => {
      const question = await client.ask('send', args, { user: 'ann' })
      const body = JSON.stringify(input([say('hello')]))
      const slow = client.raw(message(body, [`Content-Length: ${length(body)}`, 'Connection: close']), {
        byteBy: 20,
      })
      await client.answer(question, yes, { user: 'bob' })
      await slow
    },
  },
  {
    name: 'F6 a body of somebody who is not signed in',
    sends: 'the beginning of a body of 4 MB, without signing in, and then silence',
    code: 'invalid-request',
    check: 'who it is comes first',
    server: { mustSignIn: true },
    play: async ({ raw }, { breach }) => {
      const { status } = await raw(unfinished('{', { user: '' }))
      if (status !== 401) breach('the body was waited for')
    },
  },
  {
    name: 'F6 a body that does not end in time',
    sends: 'the beginning of a body, and then silence',
    code: 'invalid-request',
    check: 'time of a body',
    server: { limits: { arrivalTime: 200 } },
    play: async ({ raw }, { breach }) => {
      const { status } = await raw(unfinished('{'))
      if (status !== 408) breach('the body was waited for')
    },
  },
  {
    name: 'F6 bodies that do not end, beside each other',
    sends: 'the beginnings of four bodies, 40 KB each, where 100 KB may arrive at once',
    code: 'too-many-requests',
    check: 'bytes that arrive',
    server: { limits: { arrivingBytes: { perOwner: 100_000 } } },
    play: async ({ raw }, { breach }) => {
      const refused = Array.from({ length: 4 }, async () => {
        const { status } = await raw(unfinished(' '.repeat(40_000)))
        if (status !== 429) throw new Error(`HTTP ${status}`)
      })
      await Promise.any(refused).catch(() => breach('all of them were held'))
    },
  },
]
