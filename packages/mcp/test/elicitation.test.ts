import { join } from 'node:path'
import type { AGUIEvent } from '@countersign/core'
import { type McpToolsOptions, mcpTools } from '@countersign/mcp'
import { type AgentOptions, answerQueue, type RunOptions } from '@countersign/server'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { call, input, last, results, say, testAgent, user } from '../../server/test/support.js'
import { afterwards, overHttp, overStdio, scriptOf, workspace } from './support.js'

const script = await scriptOf('packages/mcp/test/odd-server.process.ts')
const ask = ['c1', 'mcp__odd__ask', {}] as const

interface Question {
  readonly id: string
  readonly message: string
  readonly responseSchema: unknown
  readonly metadata: { readonly countersign: Record<string, unknown> }
}

const questions = (events: readonly AGUIEvent[]): Question[] =>
  events.flatMap((event) =>
    event.type === 'CUSTOM' && event.name === 'interrupt-requested' ? [event.value] : [],
  )

const isCustom = (name: string) => (event: AGUIEvent) => event.type === 'CUSTOM' && event.name === name

/** What the server made of the answer, as its tool tells the model. */
const told = (events: readonly AGUIEvent[]) =>
  results(events).map(({ content }) => ('content' in content ? JSON.parse(content.content[0].text) : content))

describe.each([
  ['stdio', overStdio],
  ['HTTP', overHttp],
] as const)('a question of a server over %s', (_, start) => {
  async function connect(options: Partial<McpToolsOptions> = {}) {
    const server = await start(script, join(await workspace(), 'log'))
    const mcp = await mcpTools(server.source, {
      server: 'odd',
      trustAnnotations: ['hang', 'work', 'die', 'change', 'ask'],
      warn: () => {},
      ...options,
    })
    afterwards(mcp.dispose)
    return { server, mcp }
  }

  async function open(options: Partial<McpToolsOptions> = {}, more: Partial<AgentOptions> = {}) {
    const { server, mcp } = await connect(options)
    const { agent } = testAgent([call(ask), say('ok')], { tools: mcp.tools, ...more })
    return { server, ...run(agent) }
  }

  function run(agent: ReturnType<typeof testAgent>['agent'], options: RunOptions = {}) {
    const answers = answerQueue()
    const events: AGUIEvent[] = []
    const done = (async () => {
      for await (const event of agent.run(input([user('go')]), { answers, ...options })) events.push(event)
    })()
    const asked = async (count = 1): Promise<Question> => {
      await expect.poll(() => questions(events).length).toBe(count)
      return questions(events)[count - 1] ?? expect.fail('nothing was asked')
    }
    return { answers, events, done, asked }
  }

  const answered = ({ id }: Question, payload: unknown) => ({
    interruptId: id,
    status: 'resolved' as const,
    payload,
  })

  test('is an interrupt to the person of the run, and the answer ends the call', async () => {
    const { answers, events, done, asked } = await open()
    const question = await asked()
    expect(question).toMatchObject({
      reason: 'input_required',
      message: 'The MCP server odd asks, and gets your answer: "Which colour?"',
      responseSchema: { type: 'object', properties: { colour: { enum: ['red', 'blue'] } } },
      metadata: { countersign: { askedBy: { toolCallId: 'c1', toolName: 'mcp__odd__ask' } } },
    })
    await answers.put(answered(question, { colour: 'red', secret: 'not asked for' }))
    await done
    expect(told(events)).toEqual([{ action: 'accept', content: { colour: 'red' } }])
    expect(last(events)).toMatchObject({ outcome: { type: 'success' } })
  })

  test('takes only an answer that fits its schema, and a no is a decline', async () => {
    const { answers, events, done, asked } = await open()
    await answers.put(answered(await asked(), { colour: 'green' }))
    const again = await asked(2)
    expect(again.metadata.countersign.problem).toMatch(/colour/)
    await answers.put({ interruptId: again.id, status: 'cancelled' })
    await done
    expect(told(events)).toEqual([{ action: 'decline' }])
  })

  test('is declined where the run takes no answers while it is open, and the call ends', async () => {
    const { mcp } = await connect()
    const { agent } = testAgent([call(ask), say('ok')], { tools: mcp.tools })
    const { events, done } = run(agent, { answers: undefined })
    await done
    expect(questions(events)).toEqual([])
    expect(told(events)).toEqual([{ action: 'decline' }])
  })

  test('stops the clock of the call: a person may take longer than the call', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
    onTestFinished(() => void vi.useRealTimers())
    const { answers, events, done, asked } = await open({ timeout: 30_000, maxTimeout: 60_000 })
    const question = await asked()
    await vi.advanceTimersByTimeAsync(90_000)
    await answers.put(answered(question, { colour: 'blue' }))
    await done
    expect(told(events)).toEqual([{ action: 'accept', content: { colour: 'blue' } }])
  })

  test('is withdrawn with a run that is stopped, and with a server that dies', async () => {
    const stop = new AbortController()
    const { mcp, server } = await connect()
    const { agent } = testAgent([call(ask), say('ok')], { tools: mcp.tools })
    const stopped = run(agent, { signal: stop.signal })
    await stopped.asked()
    stop.abort()
    await stopped.done
    expect(last(stopped.events)).toMatchObject({ outcome: { type: 'cancelled' } })

    const { agent: other } = testAgent([call(ask), say('ok')], { tools: mcp.tools })
    const killed = run(other)
    await killed.asked()
    await server.kill()
    await killed.done
    expect(results(killed.events)).toMatchObject([
      // over HTTP the request may notice it before the connection does
      {
        content: {
          type: 'execution-error',
          reason: expect.stringMatching(/went away while ask ran|gave no result/),
        },
      },
    ])
    expect(killed.events.filter(isCustom('interrupt-closed'))).toHaveLength(1)
    expect(last(killed.events)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'success' } })
  })

  test('reaches one run of several calls, and nobody where calls of several runs are open', async () => {
    const { mcp } = await connect()
    const both = call(ask, ['c2', 'mcp__odd__ask', {}])
    const { agent } = testAgent([both, say('ok')], { tools: mcp.tools })
    const one = run(agent)
    await one.asked(2)
    for (const question of questions(one.events)) await one.answers.put(answered(question, { colour: 'red' }))
    await one.done
    expect(told(one.events)).toHaveLength(2)

    const warnings: string[] = []
    const busy = await connect({ timeout: 2000, warn: (message) => void warnings.push(message) })
    const hanging = testAgent([call(['c3', 'mcp__odd__hang', {}]), say('ok')], { tools: busy.mcp.tools })
    const other = run(hanging.agent)
    await expect.poll(() => other.events.some(isCustom('tool-progress'))).toBe(true)
    const asking = testAgent([call(ask), say('ok')], { tools: busy.mcp.tools })
    const { events, done } = run(asking.agent)
    await done
    expect([told(events), questions(events)]).toEqual([[{ action: 'decline' }], []])
    expect(warnings).toEqual([expect.stringContaining('calls of several runs are open')])
    await other.done
  })

  test('reaches nobody else once a call was left that its server may still ask about', async () => {
    const { mcp } = await connect()
    const leaving = new AbortController()
    const hanging = testAgent([call(['c3', 'mcp__odd__hang', {}]), say('ok')], { tools: mcp.tools })
    const alice = run(hanging.agent, { context: { subject: 'alice' }, signal: leaving.signal })
    await expect.poll(() => alice.events.some(isCustom('tool-progress'))).toBe(true)
    leaving.abort()
    await alice.done
    const asking = () => testAgent([call(ask), say('ok')], { tools: mcp.tools }).agent
    const bob = run(asking(), { context: { subject: 'bob' } })
    await bob.done
    expect([told(bob.events), questions(bob.events)]).toEqual([[{ action: 'decline' }], []])
    const again = run(asking(), { context: { subject: 'alice' } })
    await again.answers.put(answered(await again.asked(), { colour: 'red' }))
    await again.done
    expect(told(again.events)).toHaveLength(1)
  })
})
