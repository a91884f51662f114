// Every option that the server, the SQL stores and the Redis stores publish is checked when it is given. The names and types are read from
// the declarations, so an option without a check fails here.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { handleAiSdkChat, resumeAiSdkChat, toAiSdkResponse } from '@countersign/ai-sdk/server'
import { isCountersignError } from '@countersign/core'
import { redisAnswerChannel, redisLedger, redisRunLog, redisThreads } from '@countersign/redis'
import {
  ApprovalCache,
  answerQueue,
  answerResponse,
  createAgent,
  grantsResponse,
  handleChat,
  memoryLedger,
  memoryRunLog,
  memoryThreads,
  readRunInput,
  rejoinResponse,
  scriptedModel,
  serveSocket,
  statelessLedger,
  threadResponse,
} from '@countersign/server'
import { createLedger, createThreads } from '@countersign/server/ledger-kit'
import {
  fileLedger,
  toNodeAnswerHandler,
  toNodeGrantsHandler,
  toNodeHandler,
  toSocketHandler,
} from '@countersign/server/node'
import { ensureSchema, sqlAnswerChannel, sqlLedger, sqlRunLog, sqlThreads } from '@countersign/sql'
import { describe, expect, test } from 'vitest'
import { declaredOptions, type Option } from '../declared-options.js'

const root = join(import.meta.dirname, '../..')

const { optionsOf, declarations } = declaredOptions('server', 'sql', 'redis', 'ai-sdk')

/** Times may have fractions; everything else is counted. */
const durations = new Set([
  ...['expiresIn', 'lease', 'wait', 'previewTimeout', 'model', 'run', 'arrivalTime', 'stallTime', 'within'],
  ...['keepEarly', 'ttl', 'keepFor', 'grantTtl', 'keepAlive', 'goOnFor', 'timeout', 'pollMs'],
])

/** Values that no option of this type takes. */
function wrongFor({ name, type }: Option): readonly unknown[] {
  const wrong: unknown[] = [1n, null, Symbol('s')]
  if (!type.startsWith('Promise')) wrong.push(Promise.resolve({}))
  if (type.includes('boolean')) wrong.push('false', 'true', 0, 1)
  if (type.includes('number'))
    wrong.push(Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, -1, '5')
  if (type.includes('number') && !durations.has(name)) wrong.push(1.5, 2 ** 53)
  if (/^(?:Share|Limits|Timeouts|ApprovalOptions)\b/.test(type)) wrong.push(1, 0, true, 'all', [])
  return wrong
}

const call = (run: (...args: never[]) => unknown, ...args: readonly unknown[]): unknown =>
  Reflect.apply(run, undefined, args)

const model = scriptedModel([])
const agent = createAgent({ model, approvals: { secret: 'x'.repeat(32) } })
const input = { threadId: 't', runId: 'r', messages: [] }
const get = () => new Request('http://localhost/chat?threadId=t&runId=r')
const post = () => new Request('http://localhost/chat', { method: 'POST', body: '{}' })
const socket = { readyState: 1, send() {}, close() {}, addEventListener() {} }
const connection = { dialect: 'sqlite', query: async () => [] }
const client = { eval: async () => null, duplicate: () => client }
const rows = {}
async function* events() {}

type Give = (options: object) => unknown

/** Where options of each interface are given, and the path of the object that holds them. */
const given: Readonly<Record<string, readonly (readonly [where: string, give: Give, path?: string])[]>> = {
  AgentOptions: [['createAgent', (options) => call(createAgent, { model, ...options })]],
  ApprovalOptions: [['createAgent', (approvals) => call(createAgent, { model, approvals }), 'approvals.']],
  Timeouts: [['createAgent', (timeouts) => call(createAgent, { model, timeouts }), 'timeouts.']],
  Limits: [
    ['createAgent', (limits) => call(createAgent, { model, limits }), 'limits.'],
    ['readRunInput', (limits) => call(readRunInput, post(), limits), 'limits.'],
  ],
  Share: optionsOf('Limits')
    .filter(({ type }) => type.startsWith('Share'))
    .map(({ name }) => [
      'createAgent',
      (share) => call(createAgent, { model, limits: { [name]: share } }),
      `limits.${name}.`,
    ]),
  OutputOptions: [['createAgent', (options) => call(createAgent, { model, ...options })]],
  RunOptions: [
    ['agent.run', (options) => call(agent.run, input, options)],
    ['agent.generate', (options) => call(agent.generate, input, options)],
  ],
  DrainOptions: [['agent.drain', (options) => call(agent.drain, options)]],
  AnswerQueueOptions: [['answerQueue', (options) => call(answerQueue, options)]],
  ApprovalCacheOptions: [['ApprovalCache', (options) => Reflect.construct(ApprovalCache, [options])]],
  MemoryLedgerOptions: [['memoryLedger', (options) => call(memoryLedger, options)]],
  StatelessLedgerOptions: [
    ['statelessLedger', (options) => call(statelessLedger, { acceptReplay: true, ...options })],
  ],
  FileLedgerOptions: [['fileLedger', (options) => call(fileLedger, 'never-made.sqlite', options)]],
  LedgerLimits: [['createLedger', (options) => call(createLedger, rows, options)]],
  MemoryThreadsOptions: [['memoryThreads', (options) => call(memoryThreads, options)]],
  ThreadLimits: [['createThreads', (options) => call(createThreads, rows, options)]],
  MemoryRunLogOptions: [['memoryRunLog', (options) => call(memoryRunLog, options)]],
  ChatOptions: [
    ['handleChat', (options) => call(handleChat, agent, post(), options)],
    ['handleAiSdkChat', (options) => call(handleAiSdkChat, agent, post(), options)],
  ],
  ThreadOptions: [
    ['threadResponse', (options) => call(threadResponse, agent, get(), options)],
    ['rejoinResponse', (options) => call(rejoinResponse, agent, get(), options)],
    ['resumeAiSdkChat', (options) => call(resumeAiSdkChat, agent, get(), options)],
  ],
  AiSdkResponseOptions: [['toAiSdkResponse', (options) => call(toAiSdkResponse, events(), options)]],
  AnswerOptions: [['answerResponse', (options) => call(answerResponse, agent, post(), options)]],
  GrantsOptions: [['grantsResponse', (options) => call(grantsResponse, agent, get(), options)]],
  SocketOptions: [['serveSocket', (options) => call(serveSocket, agent, socket, get(), options)]],
  NodeChatOptions: [['toNodeHandler', (options) => call(toNodeHandler, agent, options)]],
  NodeAnswerOptions: [
    ['toNodeAnswerHandler', (options) => call(toNodeAnswerHandler, agent, options)],
    ['toNodeGrantsHandler', (options) => call(toNodeGrantsHandler, agent, options)],
  ],
  NodeSocketOptions: [['toSocketHandler', (options) => call(toSocketHandler, agent, options)]],
  SqlLedgerOptions: [['sqlLedger', (options) => call(sqlLedger, connection, options)]],
  SqlThreadsOptions: [['sqlThreads', (options) => call(sqlThreads, connection, options)]],
  SqlRunLogOptions: [['sqlRunLog', (options) => call(sqlRunLog, connection, options)]],
  SqlAnswerChannelOptions: [['sqlAnswerChannel', (options) => call(sqlAnswerChannel, connection, options)]],
  SchemaOptions: [['ensureSchema', (options) => call(ensureSchema, connection, options)]],
  RedisOptions: [['redisAnswerChannel', (options) => call(redisAnswerChannel, client, options)]],
  RedisLedgerOptions: [['redisLedger', (options) => call(redisLedger, client, options)]],
  RedisThreadsOptions: [['redisThreads', (options) => call(redisThreads, client, options)]],
  RedisRunLogOptions: [['redisRunLog', (options) => call(redisRunLog, client, options)]],
}

/** Options that nobody gives to a function of these packages, and why. */
const notGiven: Readonly<Record<string, string>> = {
  FullLimits: 'what agent.limits returns',
  FullShare: 'the same',
  StrictJsonLimits: 'two numbers of one call',
  SqlRowOptions: 'of authors of ledgers, from their own checked options',
}

async function refusal(give: Give, options: object): Promise<unknown> {
  try {
    await give(options)
    return 'nothing was refused'
  } catch (error) {
    return error
  }
}

test('every published interface of options is in this test', () => {
  const entries = [
    'server/src/index',
    'server/src/node',
    'server/src/ledger-kit',
    'sql/src/index',
    'redis/src/index',
    'ai-sdk/src/server',
  ]
  const source = entries.map((entry) => readFileSync(join(root, `packages/${entry}.ts`), 'utf8')).join()
  const published = (source.match(/\b[A-Z]\w*(?:Options|Limits|Share)\b|\bTimeouts\b/g) ?? []).filter(
    (name) => declarations.has(name),
  )
  expect(published.length).toBeGreaterThan(25)
  expect(published.filter((name) => !(name in given) && !(name in notGiven))).toEqual([])
})

describe.each(Object.entries(given))('%s', (name, places) => {
  const cases = places.flatMap(([where, give, path = '']) =>
    optionsOf(name).map((option) => ({ where, give, path, option, full: `${path}${option.name}` })),
  )

  test.each(cases)(
    '$where refuses a wrong $full and says what it must be',
    async ({ where, give, option, full }) => {
      for (const value of wrongFor(option)) {
        const error = await refusal(give, { [option.name]: value })
        const said = isCountersignError(error) ? error.message : String(error)
        expect(error, `${full}: ${String(value)}: ${said}`).toMatchObject({
          code: 'invalid-option',
          data: { option: full },
        })
        expect(said).toMatch(/ must be .+, not .+\.$|acceptReplay: true/)
        expect(said).toContain(full)
        if (name !== 'RunOptions') expect(said).toContain(where)
      }
    },
  )

  test('a misspelt name is refused, and the message lists the names', async () => {
    for (const { where, give, full, option } of cases) {
      // These take the options of their callers as they are.
      if (['createLedger', 'createThreads'].includes(where)) continue
      const error = await refusal(give, { [`${option.name}x`]: undefined, [`x${option.name}`]: 1 })
      expect(error, full).toMatchObject({ code: 'invalid-option' })
      expect(String(error)).toContain(`x${option.name}.`)
      expect(String(error)).toMatch(new RegExp(`there are .*\\b${option.name}\\b`, 'i'))
    }
  })

  test('an option that is undefined counts as left out', async () => {
    for (const { give, option, where } of cases) {
      if (['fileLedger', 'agent.drain'].includes(where) || ['model', 'acceptReplay'].includes(option.name))
        continue
      expect(await refusal(give, { [option.name]: undefined })).not.toMatchObject({ code: 'invalid-option' })
    }
  })
})

test('T38 a limit that is given as a number where a share is expected is refused, as is a name that no limit has', () => {
  const limits = (value: object) => () => call(createAgent, { model, limits: value })
  expect(limits({ runs: 1 })).toThrow(
    'createAgent: limits.runs must be an object with perOwner, total, not 1.',
  )
  expect(limits({ runs: { perowner: 1 } })).toThrow(
    'createAgent: there is no option limits.runs.perowner. Did you mean perOwner? In limits.runs there are perOwner, total.',
  )
  expect(limits({ body: 1 })).toThrow(/there is no option limits\.body\. In limits there are bodyBytes, /)
})

test('T38 a lease or a wait that no timer can hold is refused', () => {
  for (const option of ['lease', 'wait'])
    expect(() => call(createAgent, { model, approvals: { [option]: 2 ** 31 } })).toThrow(
      `createAgent: approvals.${option} must be a positive number of milliseconds, at most 2147483647, not 2147483648.`,
    )
})

test('approvals that would expire beyond what a Date can hold are refused', () => {
  expect(() => call(createAgent, { model, approvals: { expiresIn: 1e15 } })).toThrow(
    /approvals\.expiresIn must be/,
  )
})

test('the value of a wrong option is not in the message, which may be logged', () => {
  expect(() => call(createAgent, { model, approvals: { policy: 'hunter2-secret' } })).toThrow(
    'createAgent: approvals.policy must be a function, not a string.',
  )
})

test('drain refuses a `within` that is not a number of milliseconds, and goes on taking runs', async () => {
  const own = createAgent({
    model: scriptedModel([
      [
        { type: 'text-delta', delta: 'Hi.' },
        { type: 'finish', reason: 'stop' },
      ],
    ]),
    approvals: { secret: 'x'.repeat(32) },
  })
  for (const within of [Number.NaN, -1, Number.POSITIVE_INFINITY, '20000'])
    await expect(call(own.drain, { within })).rejects.toMatchObject({ data: { option: 'within' } })
  expect(await own.generate(input)).toMatchObject({ text: 'Hi.' })
  await own.drain({ within: 2 ** 40 })
})

test('m5 recover refuses a `limit` that is no number of threads', async () => {
  for (const limit of [Number.NaN, -1, 0, 1.5, Number.POSITIVE_INFINITY, '5'])
    await expect(call(agent.recover, { limit })).rejects.toMatchObject({ data: { option: 'limit' } })
})
