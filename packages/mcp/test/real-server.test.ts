import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { AGUIEvent } from '@countersign/core'
import { mcpTools } from '@countersign/mcp'
import { describe, expect, test } from 'vitest'
import {
  answer,
  ask,
  call,
  collect,
  input,
  last,
  requests,
  results,
  say,
  testAgent,
  user,
} from '../../server/test/support.js'
import {
  afterwards,
  client,
  errorOf,
  overHttp,
  overStdio,
  type Started,
  scriptOf,
  workspace,
} from './support.js'

const script = await scriptOf('examples/mcp-server/src/main.ts')
const context = { context: { subject: 'ada' } }

const progress = (events: readonly AGUIEvent[]) =>
  events.flatMap((event) =>
    event.type === 'CUSTOM' && event.name === 'tool-progress' ? [event.value.data] : [],
  )

const inOld = async (folder: string) => (await readdir(join(folder, 'old'))).sort()

describe.each([
  ['stdio', overStdio],
  ['HTTP', overHttp],
] as const)('over %s', (_, start) => {
  async function connect(...more: string[]) {
    const folder = await workspace()
    const server: Started = await start(script, folder, ...more)
    const mcp = await mcpTools(server.source, {
      server: 'files',
      trustAnnotations: ['measure_files', 'find_duplicates', 'append_line'],
    })
    afterwards(mcp.dispose)
    return { folder, server, mcp, tool: (name: string) => mcp.tools.find((one) => one.name === name) }
  }

  const clearing = call(['c1', 'mcp__files__clear_folder', { folder: 'old' }])

  test('S3.51 the tools of a real server are server tools, named by server, with a policy where one is required', async () => {
    const { mcp, tool } = await connect()
    expect(mcp.tools.map(({ name, location, approval }) => [name, location, approval?.required])).toEqual([
      ['mcp__files__measure_files', 'server', undefined],
      ['mcp__files__find_duplicates', 'server', undefined],
      ['mcp__files__append_line', 'server', undefined],
      ['mcp__files__clear_folder', 'server', true],
    ])
    const clear = tool('mcp__files__clear_folder')
    expect(clear?.approval?.message).toContain(
      'The server says of it: "Deletes all files of a folder for good."',
    )
    expect(clear?.annotations?.destructiveHint).toBe(true)
    expect(clear?.parameters).toMatchObject({ type: 'object', required: ['folder'] })
  })

  test('what only reads runs unasked; progress reaches the page and structured content the model', async () => {
    const { mcp } = await connect('--pause', '100')
    const { agent, model } = testAgent(
      [call(['c1', 'mcp__files__find_duplicates', { folder: 'old' }]), say('done')],
      { tools: mcp.tools },
    )
    const events = await collect(agent, input([user('go')]))
    const found = { content: [], structuredContent: { duplicates: [['old/a.txt', 'old/b.txt']] } }
    expect(results(events)).toEqual([{ id: 'c1', content: found }])
    // what comes in one piece with the result is no news any more, and the SDK drops it
    expect(progress(events).slice(0, 2)).toEqual([
      { progress: 1, total: 3, message: 'old/a.txt' },
      { progress: 2, total: 3, message: 'old/b.txt' },
    ])
    expect(model.requests[1]?.messages.at(-1)?.content).toMatchObject([{ outcome: { value: found } }])
  })

  test('S3.53 a call that needs no approval gives what the same call gives without the gate', async () => {
    const { mcp, server } = await connect()
    const measuring = call(['c1', 'mcp__files__measure_files', { folder: 'old' }])
    const { agent } = testAgent([measuring, say('done')], { tools: mcp.tools })
    const [gated] = results(await collect(agent, input([user('go')])))
    const plain = await client(server.source)
    const direct = await plain.callTool({ name: 'measure_files', arguments: { folder: 'old' } })
    expect(gated?.content).toEqual({ content: [], structuredContent: direct.structuredContent })
  })

  test('S3.52 a destructive tool is asked about, and an approval makes exactly one call', async () => {
    const { mcp, folder } = await connect()
    const { agent } = testAgent([clearing, say('done')], { tools: mcp.tools })
    const { first, history } = await ask(agent, {}, context)
    expect(first).toMatchObject({ toolName: 'mcp__files__clear_folder', input: { folder: 'old' } })
    expect(await inOld(folder)).toEqual(['a.txt', 'b.txt', 'c.txt'])
    const resume = [answer(first, { approved: true })]
    const answered = await collect(agent, input(history, { resume }), context)
    expect(results(answered)).toEqual([
      { id: 'c1', content: { content: [], structuredContent: { deleted: 3 } } },
    ])
    expect(await inOld(folder)).toEqual([])
  })

  test('a denied call never reaches the server', async () => {
    const { mcp, folder } = await connect()
    const { agent } = testAgent([clearing, say('done')], { tools: mcp.tools })
    const { first, history } = await ask(agent, {}, context)
    const resume = [answer(first, { approved: false, reason: 'keep them' })]
    const answered = await collect(agent, input(history, { resume }), context)
    expect(results(answered)).toMatchObject([
      { content: { type: 'execution-denied', reason: 'keep them' }, own: { outcome: 'denied' } },
    ])
    expect(await inOld(folder)).toEqual(['a.txt', 'b.txt', 'c.txt'])
  })

  test('a run that is stopped cancels the call on the server, and the connection goes on', async () => {
    const { mcp, folder } = await connect('--pause', '400')
    const append = call(['c2', 'mcp__files__append_line', { path: 'todo.txt', line: 'two' }])
    const { agent } = testAgent([clearing, append, say('done')], { tools: mcp.tools })
    const { first, history } = await ask(agent, {}, context)
    const stop = new AbortController()
    const resume = [answer(first, { approved: true })]
    const events: AGUIEvent[] = []
    for await (const event of agent.run(input(history, { resume }), { ...context, signal: stop.signal })) {
      events.push(event)
      if (progress([event]).length > 0) stop.abort()
    }
    expect(results(events)).toMatchObject([{ id: 'c1', own: { outcome: 'error', code: 'interrupted' } }])
    await new Promise((resolve) => setTimeout(resolve, 1000))
    expect(await inOld(folder)).toEqual(['b.txt', 'c.txt'])
    await collect(agent, input([user('now append')]))
    expect(await readFile(join(folder, 'todo.txt'), 'utf8')).toBe('one\ntwo\n')
  })

  test('a server killed in mid-call is an honest failure, nothing runs twice, and the next call connects again', async () => {
    const { mcp, folder, server } = await connect('--pause', '400')
    const measure = call(['c2', 'mcp__files__measure_files', { folder: '' }])
    const { agent } = testAgent([clearing, say('failed'), say('again'), measure, say('done')], {
      tools: mcp.tools,
    })
    const { first, history } = await ask(agent, {}, context)
    const again = input(history, { resume: [answer(first, { approved: true })] })
    const events: AGUIEvent[] = []
    for await (const event of agent.run(again, context)) {
      events.push(event)
      if (progress([event]).length > 0) await server.kill()
    }
    const reason = expect.stringMatching(/went away while clear_folder ran.*may or may not/)
    expect(results(events)).toMatchObject([
      { id: 'c1', content: { type: 'execution-error', reason }, own: { outcome: 'error' } },
    ])
    expect(await inOld(folder)).toEqual(['b.txt', 'c.txt'])
    await server.restart()
    const repeated = await collect(agent, { ...again, runId: 'again' }, context)
    expect(results(repeated)).toMatchObject([{ id: 'c1', content: { type: 'execution-error', reason } }])
    expect(await inOld(folder)).toEqual(['b.txt', 'c.txt'])
    expect(results(await collect(agent, input([user('measure')])))).toMatchObject([
      { content: { structuredContent: { files: 3 } } },
    ])
  })

  test('a server that went away while the person decided does not cost the approval', async () => {
    const { mcp, folder, server } = await connect()
    const { agent } = testAgent([clearing, say('done')], { tools: mcp.tools })
    const { first, history } = await ask(agent, {}, context)
    await server.kill()
    await server.restart()
    const resume = [answer(first, { approved: true })]
    const events = await collect(agent, input(history, { resume }), context)
    expect(results(events)).toMatchObject([{ content: { structuredContent: { deleted: 3 } } }])
    expect(await inOld(folder)).toEqual([])
  })

  test('arguments that do not fit the JSON Schema are neither asked about nor sent', async () => {
    const { mcp } = await connect()
    const { agent } = testAgent([call(['c1', 'mcp__files__clear_folder', { folder: 7 }]), say('ok')], {
      tools: mcp.tools,
    })
    const events = await collect(agent, input([user('go')]))
    expect(requests(events)).toEqual([])
    expect(results(events)).toMatchObject([
      {
        content: {
          type: 'execution-error',
          reason: expect.stringMatching(/do not fit: data\/folder must be string/),
        },
      },
    ])
    expect(last(events).type).toBe('RUN_FINISHED')
  })

  test('what the tool throws is an execution_error with its words', async () => {
    const { mcp } = await connect()
    const { agent } = testAgent([call(['c1', 'mcp__files__measure_files', { folder: '../..' }]), say('ok')], {
      tools: mcp.tools,
    })
    expect(results(await collect(agent, input([user('go')])))).toMatchObject([
      { content: { type: 'execution-error', reason: '"../.." is not inside the workspace.' } },
    ])
  })

  test('after dispose nothing runs, and the error says so', async () => {
    const { mcp } = await connect()
    await mcp.dispose()
    expect(await errorOf(mcp.refresh())).toMatchObject({ code: 'disposed' })
    const { agent } = testAgent([call(['c1', 'mcp__files__measure_files', { folder: '' }]), say('ok')], {
      tools: mcp.tools,
    })
    expect(results(await collect(agent, input([user('go')])))).toMatchObject([
      { content: { type: 'execution-error', reason: expect.stringContaining('nothing ran') } },
    ])
  })
})
