import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { redisForTests } from '../../scripts/redis.mjs'
import { full } from '../full.js'
import {
  buildServer,
  chatBody,
  frame,
  openWire,
  post,
  type Server,
  serves,
  upgrade,
  type Wire,
} from './raw.js'
import type { ServerConfig } from './server.process.js'

// Each flood comes at a server process of its own, whose heap would not hold it. `npm run test:full` sends the large ones at 512 MiB.
const MIB = 1024 * 1024
const heap = full ? 512 : 96
const many = (short: number, long: number) => (full ? long : short)
const { start, remove } = await buildServer()
const folder = await mkdtemp(join(tmpdir(), 'countersign-floods-'))
const redis = await redisForTests('a flood of questions in Redis')
afterAll(async () => {
  await remove()
  await redis?.stop()
  await rm(folder, { recursive: true })
})

/** Runs a flood, and then sees that somebody else is served by the same process. */
async function against<T>(config: ServerConfig, flood: (server: Server) => Promise<T>): Promise<T> {
  const server = await start(heap, config)
  try {
    const result = await Promise.race([flood(server), server.ended])
    expect(await Promise.race([serves(server.port), server.ended])).toContain('RUN_FINISHED')
    return result
  } finally {
    await server.stop()
  }
}

/** Writes each piece after the one before was taken, until the connection ends. */
async function pour(wire: Wire, pieces: Iterable<Uint8Array | string>): Promise<void> {
  for (const piece of pieces) {
    if (wire.socket.destroyed) return
    await wire.write(piece)
  }
}

function* times<T>(count: number, make: (at: number) => T): Iterable<T> {
  for (let at = 0; at < count; at++) yield make(at)
}

/** How often the tool has reported. */
async function reported(port: number): Promise<number> {
  const wire = openWire(port)
  await wire.write('GET /reported HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n')
  const [, count] = (await wire.closed).toString('latin1').split('\r\n\r\n')
  return Number(count)
}

/** How often each status came. */
function tally(answers: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const answer of answers) {
    const status = answer.slice(9, 12)
    const code = /"code":"([\w-]+)"/.exec(answer)?.[1]
    const key = code === undefined ? status : `${status} ${code}`
    counts[key] = (counts[key] ?? 0) + 1
  }
  return counts
}

const answerBody = (runId: string, approvalId: string, padding: number) =>
  JSON.stringify({
    threadId: `t-${runId}`,
    runId,
    resume: [
      {
        interruptId: approvalId,
        status: 'resolved',
        payload: { approved: true, reason: 'x'.repeat(padding) },
      },
    ],
  })

test('F6 answers to questions that were not asked are kept up to a size, and then refused', async () => {
  const count = many(160, 900)
  const refused = await against({}, async ({ port, ended }) => {
    const run = openWire(port)
    await run.write(post('/live', 'mallory', chatBody('ask 1', {}, 'r1')))
    await run.received('approval-requested')
    const answers: Promise<string>[] = []
    for (let at = 0; at < count; at++) {
      const wire = openWire(port)
      await Promise.race([wire.write(post('/answer', 'mallory', answerBody('r1', `none-${at}`, MIB))), ended])
      answers.push(wire.received('\r\n\r\n'))
    }
    // all but the few that are kept until the run ends
    const last = await Promise.any(answers.slice(-8))
    return last
  })
  expect(refused).toContain('429')
})

test('F6 a socket that takes no replies and goes on asking is closed', async () => {
  const id = 'i'.repeat(250)
  const asks = Buffer.concat([...times(200, () => frame(JSON.stringify({ type: 'answer', id, resume: [] })))])
  const code = await against({}, async ({ port }) => {
    const wire = openWire(port)
    await wire.write(upgrade('mallory'))
    await wire.received('\r\n\r\n')
    wire.socket.pause()
    await pour(
      wire,
      times(many(2000, 12_000), () => asks),
    )
    wire.socket.resume()
    return wire.closeCode()
  })
  expect(code).toBe(1008)
})

test('F6 a reply does not repeat an id of any length', async () => {
  const wires = many(40, 200)
  const codes = await against({}, ({ port }) =>
    Promise.all(
      [...times(wires, () => openWire(port))].map(async (wire) => {
        await wire.write(upgrade('mallory'))
        await wire.received('\r\n\r\n')
        wire.socket.pause()
        const ask = frame(JSON.stringify({ type: 'answer', id: 'i'.repeat(3 * MIB), resume: [] }))
        await pour(
          wire,
          times(3, () => ask),
        )
        wire.socket.resume()
        return wire.closeCode()
      }),
    ),
  )
  expect(codes.filter((code) => code !== 1008 && code !== 1013)).toEqual([])
})

test('F6 pings of a socket that takes no pongs end it', async () => {
  const pings = Buffer.concat([...times(500, () => frame('p'.repeat(125), { opcode: 9 }))])
  await against({}, async ({ port }) => {
    const wire = openWire(port)
    await wire.write(upgrade('mallory'))
    await wire.received('\r\n\r\n')
    wire.socket.pause()
    await pour(
      wire,
      times(many(2500, 12_000), () => pings),
    )
    wire.socket.resume()
    // by ws itself or by us; either way it is not left open
    await wire.closed
  })
})

test('F6 nobody unknown makes the server read a body: 401 comes before it', async () => {
  const answers = await against({}, ({ port }) =>
    Promise.all(
      [...times(20, () => openWire(port))].map(async (wire) => {
        await wire.write(post('/chat', undefined, '{', 4 * MIB))
        return wire.received('\r\n\r\n')
      }),
    ),
  )
  expect(tally(answers)).toEqual({ '401 invalid-request': 20 })
})

test('F6 bodies that never end are counted together, and refused beyond a size', async () => {
  const body = ' '.repeat(4 * MIB - 1)
  const count = many(24, 200)
  const answers = await against({}, ({ port }) =>
    Promise.any(
      [...times(count, () => openWire(port))].map(async (wire) => {
        await wire.write(post('/chat', 'mallory', body, 4 * MIB))
        const answer = await wire.received('\r\n\r\n')
        // a connection that ends while it is written to may lose what was not read
        if (answer === '') throw new Error('nothing was received')
        return answer
      }),
    ),
  )
  expect(tally([answers])).toEqual({ '429 too-many-requests': 1 })
})

test('F6 a body and a message must arrive in time', async () => {
  const [body, code] = await against({ limits: { arrivalTime: 200 } }, async ({ port }) => {
    const slow = openWire(port)
    await slow.write(post('/chat', 'mallory', '{', 100))
    const socket = openWire(port)
    await socket.write(upgrade('mallory'))
    await socket.received('\r\n\r\n')
    await socket.write(frame('{', { length: 100 }))
    return Promise.all([slow.received('\r\n\r\n'), socket.closeCode()])
  })
  expect(tally([body])).toEqual({ '408 invalid-request': 1 })
  expect(code).toBe(1008)
})

test('F6 a frame of more than 4 MiB is refused by its header', async () => {
  const codes = await against({}, ({ port }) =>
    Promise.all(
      [...times(many(20, 200), () => openWire(port))].map(async (wire) => {
        await wire.write(upgrade('mallory'))
        await wire.received('\r\n\r\n')
        await wire.write(frame('x'.repeat(1000), { length: 90 * MIB }))
        return wire.closeCode()
      }),
    ),
  )
  expect(new Set(codes)).toEqual(new Set([1009]))
})

test('F6 messages of unknown senders that never end are counted together', async () => {
  const count = many(32, 250)
  const part = frame('x'.repeat(3 * MIB), { length: 4 * MIB })
  const code = await against({}, ({ port }) =>
    Promise.any(
      [...times(count, () => openWire(port))].map(async (wire) => {
        await wire.write(upgrade(undefined))
        await wire.received('\r\n\r\n')
        await wire.write(part)
        return wire.closeCode()
      }),
    ),
  )
  expect(code).toBe(1013)
})

test('F6 progress that nobody reads is not kept for ever', async () => {
  const count = many(100_000, 1_000_000)
  await against({}, async ({ port, ended }) => {
    const wire = openWire(port)
    await wire.write(post('/chat', 'mallory', chatBody(`report ${count}`)))
    await wire.received('RUN_STARTED')
    wire.socket.pause()
    // others are served while it reports, and until it has said all
    for (let said = 0; said < count; ) {
      await Promise.race([serves(port), ended])
      said = await Promise.race([reported(port), ended])
    }
  })
})

test('F6 live runs are counted for their user, by number and by what they hold', async () => {
  const padding = 'x'.repeat(MIB)
  const answers = await against({}, async ({ port, ended }) => {
    const runs: Promise<string>[] = []
    for (let at = 0; at < many(120, 1000); at++) {
      const wire = openWire(port)
      const history = { forwardedProps: at % 2 === 0 ? { padding } : {} }
      await Promise.race([wire.write(post('/live', 'mallory', chatBody('ask 1', history))), ended])
      runs.push(wire.received(at === 0 ? 'approval-requested' : '\r\n\r\n'))
    }
    return Promise.all(runs)
  })
  const { '200': open = 0, '429 too-many-runs': refused = 0, ...others } = tally(answers)
  expect(others).toEqual({})
  expect(open).toBeGreaterThan(10)
  expect(open).toBeLessThanOrEqual(64)
  expect(refused).toBeGreaterThan(10)
})

const conversation = { threadId: 'kept' }
const small = { perOwner: 16 * MIB, total: 64 * MIB }

test('bodies that wait for a store which does not answer are refused beyond a size', async () => {
  const padding = Array.from({ length: 200_000 }, () => ({}))
  const title = JSON.stringify({ title: 'x', padding })
  const answers = await against(
    { limits: { runBytes: small, arrivingBytes: small } },
    async ({ port, ended }) => {
      const wire = openWire(port)
      await wire.write('GET /stall HTTP/1.1\r\nhost: localhost\r\n\r\n')
      await wire.received('\r\n\r\n')
      const refused: Promise<string>[] = []
      for (let at = 0; at < many(16, 60); at++) {
        const [posted, renamed] = [openWire(port), openWire(port)]
        const body = chatBody('hello', { forwardedProps: { padding } }, `r${at}`)
        await Promise.race([posted.write(post('/kept', 'mallory', body)), ended])
        const patch = post('/kept?threadId=kept', 'mallory', title).replace('POST', 'PATCH')
        await Promise.race([renamed.write(patch), ended])
        refused.push(posted.received('\r\n\r\n'))
        await Promise.race([serves(port), ended])
      }
      return Promise.any(refused)
    },
  )
  expect(tally([answers])).toEqual({ '429 too-many-requests': 1 })
})

test('conversations that nobody reads are not sent again and again', async () => {
  await against({ limits: { runBytes: small, arrivingBytes: small } }, async ({ port, ended }) => {
    for (let at = 0; at < 3; at++) {
      const messages = [{ id: `u${at}`, role: 'user', content: 'x'.repeat(3 * MIB) }]
      const wire = openWire(port)
      await wire.write(post('/kept', 'mallory', chatBody('', { ...conversation, messages }, `r${at}`)))
      await Promise.race([wire.closed, ended])
    }
    for (let at = 0; at < many(12, 80); at++) {
      const wire = openWire(port)
      wire.socket.pause()
      await wire.write('GET /kept?threadId=kept HTTP/1.1\r\nhost: localhost\r\nx-user: mallory\r\n\r\n')
      await Promise.race([serves(port), ended])
    }
  })
})

test('what the tools of unread runs give counts for their user', async () => {
  const limits = full ? {} : { runBytes: { perOwner: 8 * MIB, total: 16 * MIB } }
  await against({ limits }, async ({ port, ended }) => {
    for (let at = 0; at < many(24, 160); at++) {
      const wire = openWire(port)
      wire.socket.pause()
      await wire.write(post('/chat', `mallory${at % 5}`, chatBody(`long ${many(1, 2)}000000`)))
      await Promise.race([serves(port), ended])
    }
  })
})

test('F7 one user cannot fill the memory ledger for another', async () => {
  const config = full ? {} : { maxRecords: 1000 }
  await against(config, async ({ port }) => {
    let said = ''
    for (let at = 0; at < many(6, 60); at++) {
      const wire = openWire(port)
      await wire.write(post('/chat', 'mallory', chatBody('ask 250')))
      said = (await wire.closed).toString('latin1')
    }
    expect(said).toContain('ledger-unavailable')
    const wire = openWire(port)
    await wire.write(post('/chat', 'ann', chatBody('ask 1')))
    expect((await wire.closed).toString('latin1')).toContain('approval-requested')
  })
})

for (const [name, ledger] of [
  ['fileLedger', { kind: 'file', path: join(folder, 'ledger.sqlite') }],
  ['redisLedger', { kind: 'redis', url: redis?.url ?? '', prefix: `countersign-test:${randomUUID()}:` }],
] as const) {
  test.skipIf(ledger.kind === 'redis' && (redis === undefined || !full))(
    `the large questions of one thread are asked up to 4 MiB, and then refused with a code (with ${name})`,
    async () => {
      const thread = { threadId: 'thread' }
      const [asked, small] = await against({ ledger }, async ({ port, ended }) => {
        const said: string[] = []
        for (let at = 0; at < many(30, 130); at++) {
          const wire = openWire(port)
          await Promise.race([wire.write(post('/chat', 'mallory', chatBody('fill 900000', thread))), ended])
          const answer = (await Promise.race([wire.closed, ended])).toString('latin1')
          said.push(/approval-requested|ledger-unavailable/.exec(answer)?.[0] ?? answer.slice(-500))
        }
        // a run that finds calls in its history reads all that is open in its thread
        const call = { id: 'call-1', type: 'function', function: { name: 'mail', arguments: '{}' } }
        const messages = [
          { id: 'a', role: 'assistant', toolCalls: [call] },
          { id: 'u', role: 'user', content: 'hello' },
        ]
        const wire = openWire(port)
        await wire.write(post('/chat', 'mallory', chatBody('', { ...thread, messages })))
        return [said, (await Promise.race([wire.closed, ended])).toString('latin1')] as const
      })
      expect(asked.slice(0, 4)).toEqual(Array(4).fill('approval-requested'))
      expect(new Set(asked.slice(4))).toEqual(new Set(['ledger-unavailable']))
      expect(small).toContain('RUN_FINISHED')
    },
  )
}

/** Asks for a payment to a name of so many characters, and answers. Resolves with what the answer got, or with why nothing was asked. */
async function payAndAnswer(
  { port, ended }: Server,
  { name, length, thread, user = 'mallory' }: Payment,
  answer: object,
): Promise<string> {
  const send = async (body: string) => {
    const wire = openWire(port)
    await Promise.race([wire.write(post('/chat', user, body)), ended])
    return (await Promise.race([wire.closed, ended])).toString('latin1')
  }
  const threadId = { threadId: thread }
  const asked = await send(chatBody(`pay ${length} ${name}`, threadId))
  const said = (key: RegExp) => key.exec(asked)?.[1] ?? ''
  const token = said(/"token":"([^"]+)"/)
  if (token === '') return asked.slice(-1000)
  const id = said(/"toolCallId":"([^"]+)"/)
  const written = JSON.stringify({ to: name.padEnd(length, 'я') })
  const call = { id, type: 'function', function: { name: 'pay', arguments: written } }
  const messages = [
    { id: 'u', role: 'user', content: 'go' },
    { id: 'a', role: 'assistant', toolCalls: [call] },
  ]
  const metadata = { countersign: { token } }
  const resume = [{ interruptId: said(/"approval":\{"id":"([^"]+)"/), metadata, ...answer }]
  return send(chatBody('', { ...threadId, messages, resume }))
}

interface Payment {
  readonly name: string
  readonly length: number
  readonly thread: string
  readonly user?: string
}

const resolved = (payload: object) => ({ status: 'resolved', payload })

for (const [name, ledger] of [
  ['memoryLedger', undefined],
  ['fileLedger', { kind: 'file', path: join(folder, 'decisions.sqlite') }],
] as const) {
  test(`F7 standing decisions with long reasons, and about long arguments, do not fill the process (with ${name})`, async () => {
    await against({ ...(ledger && { ledger }) }, async (server) => {
      const decided: string[] = []
      for (let at = 0; at < many(24, 80); at++) {
        const payload = { approved: false, mandate: 'never', reason: `${at}${'r'.repeat(MIB)}` }
        const payment = { name: `x${at}`, length: 10, thread: `t${Math.floor(at / 40)}` }
        decided.push(await payAndAnswer(server, payment, resolved(payload)))
      }
      // each is stored, or refused for lack of room
      const codes = decided.map((said) => /execution-denied|approval-mandate-refused/.exec(said)?.[0] ?? said)
      expect(new Set(codes)).toEqual(new Set(['execution-denied', 'approval-mandate-refused']))
      for (let at = 0; at < many(24, 80); at++) {
        const payment = { name: `y${at}`, length: 200_000, thread: 'long' }
        // too long to be offered, until there is no room for another request
        const said = await payAndAnswer(server, payment, resolved({ approved: true, mandate: 'always' }))
        expect(said).toMatch(/approval-malformed|ledger-unavailable/)
      }
    })
  })
}

test('F7 questions of any characters, and their audit trail, fit what the memory ledger may hold', async () => {
  // The default limits are those of a heap of 512 MiB.
  await against(full ? {} : { maxSize: 24 * MIB }, async (server) => {
    for (let user = 0; user < 12; user++)
      for (let at = 0; at < many(8, 60); at++) {
        const payment = {
          name: `x${at}`,
          length: many(200_000, 500_000),
          thread: `t${at}`,
          user: `user${user}`,
        }
        await payAndAnswer(server, payment, { status: 'cancelled' })
      }
  })
})

test('F2 a frame without a mask after a foreign origin ends the socket and not the process', async () => {
  const code = await against({}, async ({ port }) => {
    const wire = openWire(port)
    await wire.write(upgrade(undefined, '/', 'origin: https://evil.example\r\n'))
    await wire.write(Buffer.from([0x81, 0x01, 0x41]))
    return wire.closeCode()
  })
  expect(code).toBe(1008)
})
