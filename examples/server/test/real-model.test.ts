import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AGUIEvent, Message, ResumeEntry } from '@countersign/core'
import { toNodeHandler } from '@countersign/server/node'
import { expect, onTestFinished, test, vi } from 'vitest'
import { fold, input, requests, results, user } from '../../../packages/server/test/support.js'
import { protocols, type SaidCall } from '../../../test/providers/protocols.mjs'
import { serveRecordings } from '../../../test/providers/server.mjs'
import { demoAgent } from '../src/agent.js'
import { listen } from '../src/http.js'
import { chooseModel } from '../src/model-choice.js'
import { openModel } from '../src/open-model.js'
import { fillOnce } from '../src/samples.js'

const recordings = join(import.meta.dirname, '../../../test/providers/fixtures')

const deletion: SaidCall = {
  id: 'call_1',
  name: 'delete_file',
  arguments: '{"path":"reports/budget.csv"}',
}

/** How the environment leads to each adapter, the protocol that is then spoken, and a recorded answer in it. */
const kinds = [
  [
    'compatible',
    'openai-chat',
    (origin: string) => ({ OPENAI_BASE_URL: `${origin}/v1` }),
    {},
    'openai-chat/text.sse',
  ],
  [
    'openai',
    'openai-responses',
    () => ({ OPENAI_API_KEY: 'test' }),
    (origin: string) => ({ OPENAI_BASE_URL: `${origin}/v1` }),
    'openai-responses/text.sse',
  ],
  [
    'anthropic',
    'anthropic-messages',
    () => ({ ANTHROPIC_API_KEY: 'test' }),
    (origin: string) => ({ ANTHROPIC_BASE_URL: origin }),
    'anthropic/text.sse',
  ],
  [
    'gemini',
    'gemini-generate',
    () => ({ GEMINI_API_KEY: 'test' }),
    (origin: string) => ({ GOOGLE_GEMINI_BASE_URL: origin }),
    'gemini/text.sse',
  ],
] as const

test.each(kinds)(
  'a turn with an approval through the demo server and the model that the environment chose: %s',
  async (kind, name, environment, ofSdk, text) => {
    const protocol = protocols[name] ?? expect.fail(`nobody speaks ${name}`)
    const provider = await serveRecordings([
      protocol.say({ text: 'I delete it.', calls: [deletion] }),
      { body: await readFile(join(recordings, text)), writeSize: 7 },
    ])
    onTestFinished(provider.close)
    // what the SDKs read by themselves
    const own = typeof ofSdk === 'function' ? ofSdk(provider.origin) : {}
    for (const [variable, value] of Object.entries(own)) vi.stubEnv(variable, String(value))
    onTestFinished(() => void vi.unstubAllEnvs())

    const { choice } = chooseModel(environment(provider.origin))
    expect(choice.kind).toBe(kind)
    const { post, workspace } = await serveDemo(await openModel(choice))
    const file = join(workspace, 'reports/budget.csv')
    const question = [user('Delete the budget')]
    const first = await post(question)
    const [asked] = requests(first)
    expect(asked).toMatchObject({ toolName: 'delete_file', input: { path: 'reports/budget.csv' } })
    expect([existsSync(file), provider.requests.length]).toEqual([true, 1])

    const answer = {
      interruptId: asked?.approval.id ?? '',
      status: 'resolved' as const,
      payload: { approved: true },
    }
    const second = await post(fold(question, first), [answer])
    expect(results(second)).toMatchObject([{ content: { path: 'reports/budget.csv' } }])
    expect(existsSync(file)).toBe(false)
    const said = second
      .flatMap((event) => (event.type === 'TEXT_MESSAGE_CONTENT' ? [event.delta] : []))
      .join('')
    const expected = JSON.parse(
      await readFile(join(recordings, text.replace('.sse', '.expect.json')), 'utf8'),
    )
    expect(said).toBe(expected.text)
    expect(second.at(-1)).toMatchObject({ type: 'RUN_FINISHED', outcome: { type: 'success' } })
    expect(JSON.stringify(provider.requests[1]?.body)).toContain('budget.csv')
  },
)

/** The demo's route with this model, on a new folder. */
async function serveDemo(model: Awaited<ReturnType<typeof openModel>>) {
  const parent = await mkdtemp(join(tmpdir(), 'countersign-model-'))
  const workspace = join(parent, 'workspace')
  await fillOnce(workspace, Date.now())
  const agent = await demoAgent({ workspace, state: parent, model })
  const server = createServer(toNodeHandler(agent, { context: () => ({ subject: 'single-user' }) }))
  const url = await listen(server, 0)
  onTestFinished(async () => {
    server.closeAllConnections()
    server.close()
    await rm(parent, { recursive: true })
  })
  async function post(messages: readonly Message[], resume?: ResumeEntry[]): Promise<AGUIEvent[]> {
    const response = await fetch(`${url}/chat`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(input(messages, resume === undefined ? {} : { resume })),
    })
    const frames = (await response.text()).split('\n').filter((line) => line.startsWith('data: '))
    return frames.map((line) => JSON.parse(line.slice(6)))
  }
  return { post, workspace }
}
