import { mkdtemp, realpath, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import { respond } from './agui-server.mjs'

/**
 * Bundled, as a page has it: loaded by Node as it is, one of its CommonJS dependencies comes out in a form that it does not expect, and
 * partial arguments are then always empty.
 */
async function load() {
  const entry = await realpath(fileURLToPath(import.meta.resolve('ag-ui-client-1')))
  const folder = await mkdtemp(join(tmpdir(), 'bench-ag-ui-'))
  const outfile = join(folder, 'ag-ui.mjs')
  const contents = `export { AbstractAgent, HttpAgent } from ${JSON.stringify(entry)}; export { Observable } from 'rxjs'`
  const banner = {
    js: `import { createRequire } from 'node:module'; const require = createRequire(${JSON.stringify(import.meta.url)});`,
  }
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: dirname(entry) },
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'node',
    mainFields: ['module', 'main'],
    conditions: ['import'],
    define: { 'process.env.NODE_ENV': '"production"' },
    banner,
    logLevel: 'error',
  })
  await writeFile(outfile, outputFiles[0].contents)
  return import(pathToFileURL(outfile).href)
}

const { AbstractAgent, HttpAgent, Observable } = await load()

function observe(run, { threadId, runId }) {
  return new Observable((subscriber) => {
    subscriber.next({ type: 'RUN_STARTED', threadId, runId })
    for (const batch of run.batches) for (const event of batch) subscriber.next(event)
    const { interrupts } = run
    subscriber.next({
      type: 'RUN_FINISHED',
      threadId,
      runId,
      ...(interrupts && { outcome: { type: 'interrupt', interrupts } }),
    })
    subscriber.complete()
  })
}

function session(scenario, create, result, act = async () => {}) {
  let turn = 0
  let clock
  let published = 0
  let size = 0
  const sent = []
  const next = (input) => {
    clock.start()
    for (const entry of input.resume ?? []) sent.push(entry.interruptId)
    return scenario.agui[turn++]
  }
  const initialMessages = scenario.history.map(({ id, role, text }) => ({ id, role, content: text }))
  const agent = create(next, { threadId: 'thread', initialMessages })
  agent.subscribe({
    onMessagesChanged({ messages }) {
      const now = messages.at(-1)?.content?.length
      if (now > size) {
        size = now
        published++
      }
    },
    ...(scenario.kind === 'args' && {
      onToolCallArgsEvent({ partialToolCallArgs }) {
        if (Object.keys(partialToolCallArgs ?? {}).length > 0) published++
      },
    }),
  })
  return {
    agent,
    async run(real) {
      clock = real
      for (let i = 0; i < (scenario.turns ?? 1); i++) {
        agent.addMessage({ id: `go-${i}`, role: 'user', content: 'go' })
        await agent.runAgent({})
      }
      await act(agent)
    },
    result: () => ({ ...result(agent, sent), published }),
  }
}

class LocalAgent extends AbstractAgent {
  constructor(next, config) {
    super(config)
    this.next = next
  }

  run(input) {
    return observe(this.next(input), input)
  }
}

const local = (next, config) => new LocalAgent(next, config)

const overHttp = (next, config) =>
  new HttpAgent({
    ...config,
    url: 'http://bench.invalid/chat',
    fetch: async (_url, init) => {
      const input = JSON.parse(init.body)
      return respond(input, next(input).reads)
    },
  })

const readText = (agent) => ({
  text: agent.messages.at(-1).content,
  history: agent.messages.slice(0, -2).map(({ content }) => content),
})

export const agUi = {
  text: (scenario) => session(scenario, local, readText),
  sse: (scenario) => session(scenario, overHttp, readText),
  args: (scenario) =>
    session(scenario, local, (agent) => {
      const call = agent.messages.flatMap((message) => message.toolCalls ?? [])[0]
      return { input: JSON.parse(call.function.arguments) }
    }),
  /** Answers are given all at once: it has no other way. */
  calls: (scenario) =>
    session(
      scenario,
      local,
      (agent, sent) => {
        const results = new Map(
          agent.messages
            .filter(({ role }) => role === 'tool')
            .map((message) => [message.toolCallId, message.content]),
        )
        const calls = agent.messages.flatMap((message) => message.toolCalls ?? [])
        return {
          calls: calls.map(({ id }) => ({ id, output: JSON.parse(results.get(id) ?? 'null') })),
          text: agent.messages.at(-1).content,
          sent,
        }
      },
      async (agent) => {
        const resume = scenario.calls.map(({ approvalId }) => ({
          interruptId: approvalId,
          status: 'resolved',
          payload: { approved: true },
        }))
        await agent.runAgent({ resume })
      },
    ),
}
