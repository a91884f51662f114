import { clientTool, type ResumeEntry } from '@countersign/core'
import { type RedisClient, redisAnswerChannel, redisLedger } from '@countersign/redis'
import type { ApprovalRecord } from '@countersign/server'
import { expect } from 'vitest'
import * as z from 'zod'
import {
  call,
  collect,
  counted,
  fold,
  input,
  refusals,
  requests,
  results,
  say,
  testAgent,
  types,
  user,
} from '../../server/test/support.js'
import { useRedis } from './server.js'

const { test, connect, newPrefix } = await useRedis('replies of Redis that come late')

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))
const approve = { decision: 'approve', scope: 'once' } as const
const TIMEOUT = 300

type Late = 'reply' | 'write'

/** A client that is late with what `isMeant` picks, as often as `times` says: with the reply of Redis, or with sending it at all. */
async function lateClient(what: Late, isMeant: (text: string) => boolean, times = 1) {
  const client = await connect()
  const log = { times: 0 }
  const late: RedisClient = {
    async eval(script, options) {
      const text = options.arguments.join(' ')
      const isLate = script.includes("'HSET', KEYS[1], 'state'") && isMeant(text) && log.times < times
      if (!isLate) return client.eval(script, options)
      log.times++
      if (what === 'write') await sleep(2 * TIMEOUT)
      const reply = await client.eval(script, options)
      if (what === 'reply') await sleep(2 * TIMEOUT)
      return reply
    },
  }
  return { client: late, log }
}

const isClaim = (text: string) => text.includes('"phase":"claimed"')
const isHandOut = (text: string) => text.includes('"type":"handed-out"')

function record(more: Partial<ApprovalRecord> = {}): ApprovalRecord {
  return {
    ...{ owner: 'alice', threadId: 'thread', approvalId: 'a', runId: 'run', toolCallId: 'call' },
    ...{ toolName: 'remove', arguments: '{}', scopes: ['once'], edits: true, idempotent: false },
    ...{ token: 'cs1.k.p.m', issuedAt: 0, expiresAt: Date.now() + 60 * 60 * 1000 },
    ...more,
  }
}

const yes = (id = ''): ResumeEntry[] => [
  { interruptId: id, status: 'resolved', payload: { approved: true, scope: 'once' } },
]

for (const what of ['reply', 'write'] as const) {
  test(`a claim whose ${what} comes too late leaves the question open: the same yes runs the call, once`, async () => {
    const { client, log } = await lateClient(what, isClaim)
    const send = counted('send', { needsApproval: true })
    const ledger = redisLedger(client, { prefix: newPrefix(), timeout: TIMEOUT })
    const { agent } = testAgent([call(['c1', 'send', {}]), say('a'), say('b'), say('c')], {
      tools: [send.tool],
      approvals: { ledger, lease: 5000, wait: 10_000 },
    })
    const start = [user('go')]
    const asking = await collect(agent, input(start))
    const history = fold(start, asking)
    const again = () => collect(agent, input(history, { resume: yes(requests(asking)[0]?.approval.id) }))
    const first = await again()
    expect([log.times, refusals(first)[0]?.code, results(first), send.runs.length]).toEqual([
      1,
      'ledger-unavailable',
      [],
      0,
    ])
    // until the late write has come as well
    if (what === 'write') await sleep(3 * TIMEOUT)
    const both = await Promise.all([again(), again()])
    for (const events of [...both, await again()]) {
      expect(results(events)).toMatchObject([{ content: { done: 'send' } }])
    }
    expect(send.runs.length).toBe(1)
  })
}

test('a claim that was given up ends before its lease, and its holder has nothing any more', async () => {
  const { client } = await lateClient('reply', isClaim)
  const ledger = redisLedger(client, { prefix: newPrefix(), timeout: TIMEOUT })
  await ledger.issue(record())
  await expect(ledger.claim(record(), approve, 'h1', 60_000)).rejects.toMatchObject({
    code: 'ledger-unavailable',
  })
  while ((await ledger.lookup(record()))?.state.phase !== 'issued') await sleep(20)
  expect(await ledger.renew(record(), 'h1', 1000)).toEqual({ status: 'lost' })
  expect((await ledger.claim(record(), approve, 'h2', 60_000)).status).toBe('claimed')
  await sleep(3 * TIMEOUT)
  expect((await ledger.lookup(record()))?.state).toMatchObject({ phase: 'claimed', holder: 'h2' })
})

test('a claim is taken back also where Redis then answers nothing at all for a while', async () => {
  const client = await connect()
  let silent: Promise<unknown> | undefined
  const stalled: RedisClient = {
    async eval(script, options) {
      await silent
      const reply = await client.eval(script, options)
      if (silent === undefined && isClaim(options.arguments.join(' '))) silent = sleep(4 * TIMEOUT)
      await silent
      return reply
    },
  }
  const prefix = newPrefix()
  const ledger = redisLedger(stalled, { prefix, timeout: TIMEOUT })
  await ledger.issue(record())
  await expect(ledger.claim(record(), approve, 'h1', 60_000)).rejects.toMatchObject({
    code: 'ledger-unavailable',
  })
  const other = redisLedger(client, { prefix })
  expect((await other.claim(record(), approve, 'h2', 60_000)).status).toBe('in-progress')
  while ((await other.lookup(record()))?.state.phase !== 'issued') await sleep(20)
  expect((await other.claim(record(), approve, 'h2', 60_000)).status).toBe('claimed')
})

test('a claim that was given up and whose lease has ended stays interrupted: others may have been told', async () => {
  const { client } = await lateClient('reply', isClaim)
  const ledger = redisLedger(client, { prefix: newPrefix(), timeout: TIMEOUT })
  await ledger.issue(record())
  await expect(ledger.claim(record(), approve, 'h1', TIMEOUT / 2)).rejects.toMatchObject({
    code: 'ledger-unavailable',
  })
  await sleep(3 * TIMEOUT)
  expect((await ledger.lookup(record()))?.state.phase).toBe('interrupted')
})

test('a claim for the provider whose reply comes too late can be made again', async () => {
  const { client } = await lateClient('reply', (text) => isClaim(text) && text.includes('"holder":"h2"'))
  const ledger = redisLedger(client, { prefix: newPrefix(), timeout: TIMEOUT })
  const provider = record({ providerExecuted: true })
  await ledger.issue(provider)
  await ledger.claim(provider, approve, 'h1', 60_000)
  await ledger.complete(provider, 'h1', { type: 'handed-out', arguments: '{}' })
  await expect(ledger.reclaim(provider, 'h2', 60_000)).rejects.toMatchObject({ code: 'ledger-unavailable' })
  while ((await ledger.lookup(provider))?.state.phase !== 'done') await sleep(20)
  expect((await ledger.reclaim(provider, 'h3', 60_000)).status).toBe('claimed')
})

for (const [times, what] of [
  [1, 'reply'],
  [3, 'reply'],
  [1, 'write'],
] as const) {
  test(`a client's call whose hand-out has ${times} late ${what} is never both interrupted and handed out`, async () => {
    const { client, log } = await lateClient(what, isHandOut, times)
    const tool = clientTool({
      name: 'locate',
      description: 'Where the person is',
      input: z.object({}),
      needsApproval: true,
      execute: () => 'here',
    })
    const ledger = redisLedger(client, { prefix: newPrefix(), timeout: TIMEOUT })
    const { agent } = testAgent([call(['c1', 'locate', {}]), say('a'), say('b')], {
      tools: [tool],
      approvals: { ledger, lease: 10_000, wait: 2000 },
    })
    const start = [user('go')]
    const asking = await collect(agent, input(start))
    const history = fold(start, asking)
    const again = () => collect(agent, input(history, { resume: yes(requests(asking)[0]?.approval.id) }))
    const first = await again()
    expect([log.times > 0, results(first)]).toEqual([true, []])
    const told = types(first).includes('CUSTOM client-tool-ready')
    expect(told || refusals(first)[0]?.code === 'ledger-unavailable').toBe(true)
    expect(types(await again())).toContain('CUSTOM client-tool-ready')
  })
}

test('a run that could not be opened listens to nothing', async () => {
  const client = await connect()
  const prefix = newPrefix()
  const full = Object.assign(Object.create(client), {
    withAbortSignal: undefined,
    duplicate: () => client.duplicate(),
    eval: () => Promise.reject(new Error('OOM command not allowed when used memory > maxmemory')),
  })
  const channel = redisAnswerChannel(full, { prefix })
  for (let index = 0; index < 5; index++) {
    await expect(channel.open(`run${index}`, async () => ({ status: 'taken' }))).rejects.toMatchObject({
      code: 'ledger-unavailable',
    })
  }
  expect(await client.pubSubChannels(`${prefix}*`)).toEqual([])
  channel.close()
})

test('whoever delivers an answer whose reply is lost is told so in time', async () => {
  const client = await connect()
  const prefix = newPrefix()
  const losing = Object.assign(Object.create(client), {
    withAbortSignal: undefined,
    duplicate: () => client.duplicate(),
    eval: (script: string, options: Parameters<RedisClient['eval']>[1]) =>
      options.keys[0]?.includes(':reply:') && script.includes('PUBLISH')
        ? Promise.reject(new Error('Socket closed unexpectedly'))
        : client.eval(script, options),
  })
  const channel = redisAnswerChannel(losing, { prefix, timeout: TIMEOUT })
  const another = redisAnswerChannel(await connect(), { prefix, timeout: TIMEOUT })
  let taken = 0
  await channel.open('run', async () => {
    taken++
    return { status: 'taken' }
  })
  await expect(
    Promise.race([
      another.deliver('run', [{ interruptId: 'a', status: 'resolved', payload: { approved: true } }]),
      // ten seconds are the run's, for an answer that comes before its question
      sleep(10_000 + 10 * TIMEOUT),
    ]),
  ).rejects.toMatchObject({ code: 'ledger-unavailable' })
  expect(taken).toBe(1)
  channel.close()
  another.close()
})
