import { memoryLedger, ToolError, tool } from '@countersign/server'
import { expect, test } from 'vitest'
import * as z from 'zod'
import { answer, ask, call, collect, counted, input, results, say, testAgent, user } from './support.js'

const row = z.object({ id: z.number() })

test('what the output schema leaves out reaches nobody', async () => {
  const read = counted('read', { output: row, execute: () => ({ id: 7, password_hash: 'x' }) })
  const { agent, model } = testAgent([call(['c1', 'read', {}]), say('ok')], { tools: [read.tool] })
  const events = await collect(agent, input([user('go')]))
  expect(results(events)).toEqual([{ id: 'c1', content: { id: 7 }, own: undefined }])
  expect(JSON.stringify([events, model.requests])).not.toContain('password_hash')
})

test('a result that does not fit is a failure that says the tool has run, also when the answer is sent again', async () => {
  const write = counted('write', { needsApproval: true, output: row, execute: () => 'done' })
  const { agent } = testAgent([call(['c1', 'write', {}]), say('ok'), say('ok')], { tools: [write.tool] })
  const { history, first } = await ask(agent)
  const resume = [answer(first, { approved: true })]
  for (const _ of [1, 2]) {
    const events = await collect(agent, input(history, { resume }))
    expect(results(events)).toMatchObject([
      {
        content: { reason: expect.stringMatching(/write ran, but its result does not fit/) },
        own: { outcome: 'error', code: 'invalid-output' },
      },
    ])
  }
  expect(write.runs.length).toBe(1)
})

test('the result of a streaming tool is checked, its progress is not', async () => {
  const count = tool({
    name: 'count',
    description: 'Counts',
    input: z.object({}),
    output: row,
    execute: async function* () {
      yield 1
      yield 2
    },
    finalize: (elements) => ({ id: elements.length, more: true }),
  })
  const { agent } = testAgent([call(['c1', 'count', {}]), say('ok')], { tools: [count] })
  expect(results(await collect(agent, input([user('go')])))).toMatchObject([{ content: { id: 2 } }])
})

test('S3.15 a session approval is for the tool of one MCP server, and not for one of the same name elsewhere', async () => {
  const ledger = memoryLedger()
  const context = { context: { subject: 'ann' } }
  const agentOf = (toolServer: string | undefined) => {
    const write = counted('write', { needsApproval: true, scopes: ['once', 'session'], toolServer })
    const { agent } = testAgent(
      [call(['c1', 'write', {}]), say('ok'), call(['c2', 'write', {}]), say('ok')],
      {
        tools: [write.tool],
        approvals: { ledger },
      },
    )
    return { agent, write }
  }
  const files = agentOf('files')
  const { history, first } = await ask(files.agent, {}, context)
  await collect(
    files.agent,
    input(history, { resume: [answer(first, { approved: true, scope: 'session' })] }),
    context,
  )
  await collect(files.agent, input([user('again')]), context)
  expect(files.write.runs.length).toBe(2)
  expect(await files.agent.grants.list('ann')).toMatchObject([{ toolName: 'write', toolServer: 'files' }])
  for (const elsewhere of [agentOf('mail'), agentOf(undefined)]) {
    await ask(elsewhere.agent, {}, context)
    expect(elsewhere.write.runs.length).toBe(0)
  }
})

test('a timeout that no timer takes is refused when the agent is built', () => {
  for (const timeout of [0, -1, 0.5, Number.NaN, 2 ** 32])
    expect(() => testAgent([], { tools: [counted('slow', { timeout }).tool] })).toThrow(
      /timeout of the tool slow/,
    )
})

const resultOf = async (execute: () => unknown, resultSize?: number) => {
  const read = counted('read', { execute })
  const limits = resultSize === undefined ? {} : { limits: { resultSize } }
  const { agent } = testAgent([call(['c1', 'read', {}]), say('ok')], { tools: [read.tool], ...limits })
  const events = await collect(agent, input([user('go')]))
  const message = events.find(({ type }) => type === 'TOOL_CALL_RESULT')
  return { bytes: Buffer.byteLength(JSON.stringify(message)), result: results(events)[0] }
}

test('a result has as many bytes as limits.resultSize says, as a request has it: not characters', async () => {
  const tooLarge = { own: { outcome: 'error', code: 'result-too-large' } }
  const wide = () => '\u6f22'.repeat(700_000)
  expect((await resultOf(wide)).result).toMatchObject(tooLarge)
  expect((await resultOf(wide, 3_000_000)).result?.own).toBeUndefined()
  // text in JSON in JSON: a quote is four bytes
  const quotes = () => ({ text: '"'.repeat(600_000) })
  expect((await resultOf(quotes)).result).toMatchObject(tooLarge)
  expect((await resultOf(() => 'x'.repeat(2 ** 21 - 2))).result?.own).toBeUndefined()
  expect((await resultOf(() => 'x'.repeat(2 ** 21 - 1))).result).toMatchObject(tooLarge)
})

test('an error that is too long is cut and says so: it is no result that was not kept', async () => {
  for (const text of ['x', '\u{1f600}', '\u0001', '"']) {
    const fails = () => {
      throw new ToolError(`No account. ${text.repeat(3 * 2 ** 20)}`)
    }
    const { bytes, result } = await resultOf(fails)
    expect(result?.own).toEqual({ outcome: 'error' })
    expect(result?.content.reason).toMatch(
      /^No account\. .*\[cut: it has \d+ bytes, and 131072 are told\]$/su,
    )
    expect(result?.content.reason.isWellFormed()).toBe(true)
    expect(bytes).toBeLessThan(2 * 2 ** 20)
  }
  const short = () => {
    throw new ToolError('No account.')
  }
  expect((await resultOf(short, 8)).result?.content).toMatchObject({ reason: 'No account.' })
})
