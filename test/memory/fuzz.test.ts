import { once } from 'node:events'
import fc from 'fast-check'
import { afterAll, expect, test } from 'vitest'
import { full } from '../full.js'
import { buildServer, chatBody, type FrameShape, frame, openWire, post, serves, upgrade } from './raw.js'

const seed = 20_260_718
const inputs = full ? 100_000 : 2000
/** Connections at a time. */
const beside = 16
const { start, remove } = await buildServer()
afterAll(remove)

const urls = [
  '//',
  '///',
  '//evil.example/chat',
  'http://[',
  'http://[::1',
  'http://%',
  '/%00',
  '/chat\0',
  '/%',
  '/%E0%A4%A',
  '/%ff%fe?runId=%ff',
  '/chat?runId=%&threadId=%',
  '/grants?threadId=%00',
  '/grants?%',
  '/?runId=1&threadId=2#',
  '*',
  '/../../etc/passwd',
  `/${'a'.repeat(10_000)}`,
  `/?${'runId=1&'.repeat(1500)}`,
  '/chat?runId=r&threadId=t',
]
const paths = ['/chat', '/live', '/answer', '/grants?threadId=t', '/', ...urls]
const users = fc.constantFrom(undefined, 'mallory')

const url = fc.oneof(fc.constantFrom(...urls), fc.string({ unit: 'binary-ascii', maxLength: 40 }))
const method = fc.constantFrom(
  'GET',
  'POST',
  'DELETE',
  'OPTIONS',
  'HEAD',
  'PUT',
  'CONNECT',
  'TRACE',
  'get',
  'X',
)
const headers = fc.oneof(
  fc.constant(''),
  fc.integer({ min: 1, max: 3000 }).map((count) => 'x-flood: 1\r\n'.repeat(count)),
  fc.integer({ min: 1, max: 30_000 }).map((length) => `x-long: ${'x'.repeat(length)}\r\n`),
  fc.constantFrom(
    'content-length: 5\r\ncontent-length: 6\r\n',
    'content-length: -1\r\n',
    'content-length: 99999999999999999999\r\n',
    'transfer-encoding: chunked\r\ncontent-length: 3\r\n',
    'transfer-encoding: chunked, chunked\r\n',
    'expect: 100-continue\r\n',
    'expect: nonsense\r\n',
    'origin: null\r\n',
    'origin: http://[\r\n',
    'host: \r\n',
    'last-event-id: \xff\r\n',
    ' folded: 1\r\n',
    'no colon\r\n',
  ),
)
const anyRequest = fc
  .tuple(method, url, fc.constantFrom('HTTP/1.1', 'HTTP/1.0', 'HTTP/9.9', ''), headers, users)
  .map(([verb, at, version, more, user]) =>
    Buffer.from(
      `${verb} ${at} ${version}\r\nhost: x\r\n${user ? `x-user: ${user}\r\n` : ''}${more}\r\n`,
      'latin1',
    ),
  )

const body = fc.oneof(
  fc.string().map((text) => chatBody(text, {}, 'r')),
  fc.json({ maxDepth: 4 }),
  fc
    .json({ maxDepth: 3 })
    .map((json) => `{"threadId":"t","runId":"r","messages":${json},"tools":[],"context":[]}`),
  fc.json({ maxDepth: 3 }).map((json) => `{"threadId":"t","runId":"r","resume":${json}}`),
  fc.integer({ min: 1, max: 5000 }).map((depth) => '['.repeat(depth)),
  fc.constantFrom('{"__proto__":1}', '1e999', '"\ud800"', '', '\0'),
)
const anyPost = fc
  .tuple(
    fc.constantFrom(...paths),
    users,
    body,
    fc.option(fc.integer({ min: 0, max: 9000 }), { nil: undefined }),
  )
  .map(([path, user, text, length]) => Buffer.from(post(path, user, text, length)))

const clientFrame = fc.oneof(
  fc.string().map((text) => JSON.stringify({ type: 'run', input: JSON.parse(chatBody(text, {}, 'r')) })),
  fc
    .tuple(fc.constantFrom('run', 'rejoin', 'answer', 'stop', 'x', 7), fc.jsonValue({ maxDepth: 3 }))
    .map(([type, value]) =>
      JSON.stringify({
        type,
        input: value,
        id: value,
        threadId: 't',
        runId: value,
        resume: value,
        headers: value,
      }),
    ),
  fc.json({ maxDepth: 3 }),
  fc.string(),
)
const shape: fc.Arbitrary<FrameShape> = fc.record(
  {
    opcode: fc.integer({ min: 0, max: 15 }),
    final: fc.boolean(),
    masked: fc.boolean(),
    length: fc.oneof(
      fc.integer({ min: 0, max: 300 }),
      fc.constantFrom(65_535, 65_536, 4 * 1024 * 1024 + 1, 2 ** 31, 2 ** 40),
    ),
    reserved: fc.integer({ min: 0, max: 7 }),
  },
  { requiredKeys: [] },
)
const anyFrame = fc.oneof(
  { weight: 3, arbitrary: clientFrame.map((text) => frame(text)) },
  { weight: 2, arbitrary: fc.tuple(clientFrame, shape).map(([text, given]) => frame(text, given)) },
  // a message in pieces, with a ping in the middle
  {
    weight: 1,
    arbitrary: clientFrame.map((text) =>
      Buffer.concat([
        frame(text.slice(0, 3), { final: false }),
        frame('p', { opcode: 9 }),
        frame(text.slice(3), { opcode: 0 }),
      ]),
    ),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom('', 'x', '\x03\xe8', '\x00\x00bad').map((text) => frame(text, { opcode: 8 })),
  },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 64 }).map((bytes) => Buffer.from(bytes)) },
)
const origin = fc.constantFrom(
  '',
  'origin: https://evil.example\r\n',
  'origin: null\r\n',
  'origin: http://localhost\r\n',
)
const anySocket = fc
  .tuple(users, fc.constantFrom(...paths), origin, fc.array(anyFrame, { minLength: 1, maxLength: 6 }))
  .map(([user, path, more, frames]) => Buffer.concat([Buffer.from(upgrade(user, path, more)), ...frames]))

/** A good one, cut off or with some of its bytes changed. */
const mutated = fc
  .tuple(
    fc.oneof(anyPost, anySocket),
    fc.array(fc.tuple(fc.nat(), fc.nat(255)), { maxLength: 5 }),
    fc.option(fc.nat(), { nil: undefined }),
  )
  .map(([bytes, changes, cut]) => {
    const copy = Buffer.from(bytes)
    for (const [at, value] of changes) copy[at % copy.length] = value
    return cut === undefined ? copy : copy.subarray(0, cut % copy.length)
  })

const anyInput = fc.oneof(
  { weight: 2, arbitrary: anyRequest },
  { weight: 3, arbitrary: anyPost },
  { weight: 4, arbitrary: anySocket },
  { weight: 4, arbitrary: mutated },
  { weight: 1, arbitrary: fc.uint8Array({ maxLength: 400 }).map((bytes) => Buffer.from(bytes)) },
)

/** Sends one input and nothing after it. Resolves once the server has ended the connection. */
async function send(port: number, input: Buffer): Promise<void> {
  const { socket } = openWire(port)
  socket.end(input)
  if (!socket.closed) await once(socket, 'close').catch(() => {})
}

test(`F2 F6 whatever bytes come, the server goes on (${inputs} inputs, seed ${seed})`, {
  timeout: 1_800_000,
}, async () => {
  const server = await start(full ? 512 : 128)
  let tried = 0
  const samples = function* () {
    // in portions, so that they need not all be held
    for (let from = 0; from < inputs; from += 1000)
      yield* fc.sample(anyInput, { seed: seed + from, numRuns: Math.min(1000, inputs - from) })
  }
  const queue = samples()
  let current: readonly string[] = []
  const work = async () => {
    for (const input of queue) {
      const shown = input.toString('latin1').slice(0, 300)
      current = [...current.slice(-beside), shown]
      await Promise.race([send(server.port, input), server.ended])
      tried++
    }
  }
  try {
    // one generator for all: each takes the next input
    await Promise.all(Array.from({ length: beside }, work))
  } catch (error) {
    throw new Error(`After ${tried} inputs: ${error}. The last: ${JSON.stringify(current)}`)
  }
  expect(tried).toBe(inputs)
  expect(await Promise.race([serves(server.port), server.ended])).toContain('RUN_FINISHED')
  await server.stop()
})
