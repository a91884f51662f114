// What a reader who follows a page needs, and ends with.
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { ChatClient, type Persistence, stream } from '@countersign/client'
import { readFiles } from '@countersign/client/files'
import { persistent } from '@countersign/client/persistence'
import { type Agent, createAgent, memoryThreads, scriptedModel, tool } from '@countersign/server'
import { ensureSchema, fromD1 } from '@countersign/sql'
import { DatabaseSync } from '@photostructure/sqlite'
import { expect, onTestFinished, test, vi } from 'vitest'
import { WebSocket, WebSocketServer } from 'ws'
import { z } from 'zod'
import { blocksOf, readPage, writtenPages } from './markdown.js'

const guides = writtenPages().filter((page) => page.startsWith('docs/'))

/** The packages that the code of a page imports, without what its examples take for granted. */
function importedBy(page: string): readonly string[] {
  const code = blocksOf(page).map((block) => block.code)
  const from = [...code.join('\n').matchAll(/ from '((?:@[\w-]+\/)?[\w-]+)(?:\/[\w./-]+)?'/g)]
  return [...new Set(from.map(([, name = '']) => name))]
}

/** The module that the code of a page is. Names that it takes for granted are globals. */
async function importCode(name: string, code: string) {
  const parent = join(import.meta.dirname, '../../.verify')
  mkdirSync(parent, { recursive: true })
  const folder = mkdtempSync(join(parent, `${name}-`))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  writeFileSync(join(folder, 'code.ts'), code)
  return await import(join(folder, 'code.ts'))
}

function commandsOf(page: string): string {
  const shell = blocksOf(page).filter(({ language }) => language === 'sh')
  return shell.map(({ code }) => code).join('\n')
}

test('a guide that shows an application installs what its code imports', () => {
  const names = ['edge', 'nextjs', 'nuxt', 'sveltekit', 'solidstart', 'migrating-from-langgraph']
  /** What a new application of the framework has, and what only the code before the migration imports. */
  const given = /^(next|react|solid-js|langchain|cloudflare|@nuxt|@solidjs|@sveltejs|h3|vite)\b/
  const missing = names.flatMap((name) => {
    const page = `docs/${name}.md`
    const installed = commandsOf(page).split(/\s+/)
    const needed = importedBy(page).filter((one) => !given.test(one) && !installed.includes(one))
    return needed.map((one) => `${page}: ${one}`)
  })
  expect(missing).toEqual([])
})

test('a guide that keeps conversations in a database creates the tables', () => {
  const without = guides.filter((page) => {
    const code = blocksOf(page).map((block) => block.code)
    return /\bsqlThreads\(/.test(code.join('\n')) && !readPage(page).includes('ensureSchema')
  })
  expect(without).toEqual([])
})

test('no example of rules allows some calls beside a rule that asks about all of them: that one overrules it', () => {
  const lists = guides.flatMap((page) =>
    blocksOf(page).flatMap(({ code }) =>
      [...code.matchAll(/\brules\(\[[\s\S]*?\]\)[,\n]/g)].map(([list]) => list),
    ),
  )
  expect(lists.length).toBeGreaterThan(1)
  const useless = lists.filter(
    (list) => list.includes("decide: 'allow'") && list.includes("{ decide: 'ask' }"),
  )
  expect(useless).toEqual([])
})

test('an example of rules that lets an amount through names its currency too', () => {
  const amounts = guides.flatMap((page) =>
    blocksOf(page)
      .flatMap(({ code }) => [...code.matchAll(/where: \[([^\]]*)\],\s*decide: 'allow'/g)])
      .map(([, where = '']) => where)
      .filter((where) => where.includes("'amount'")),
  )
  expect(amounts.length).toBeGreaterThan(1)
  expect(amounts.filter((where) => !where.includes("'currency'"))).toEqual([])
})

test('a page that sends messages shows its error, and sends again what did not arrive', () => {
  const pages = writtenPages()
    .flatMap(blocksOf)
    .filter(({ language }) => ['tsx', 'vue', 'svelte'].includes(language))
    .filter(({ code }) => code.includes("'@countersign/") && code.includes('sendMessage('))
    .filter(({ file = '' }) => !file.includes('.test.'))
  expect(pages.length).toBeGreaterThan(8)
  const silent = pages.filter(({ code }) => !/\berror\b/.test(code) || !code.includes('retry()'))
  expect(silent.map(({ page, line }) => `${page}:${line}`)).toEqual([])
})

test('the page that sends files sends as large a photo as it reads, and shows why a message was refused: that of several photos is told in no other way', async () => {
  const { code = '' } = blocksOf('docs/habits.md').find(({ code }) => code.includes('readFiles(')) ?? {}
  const told = vi.spyOn(console, 'log').mockImplementation(() => {})
  onTestFinished(() => told.mockRestore())
  const photo = (bytes: number) => new File([new Uint8Array(bytes)], 'photo.jpg', { type: 'image/jpeg' })
  const onError = vi.fn()
  const agent = createAgent({ tools: [], model: scriptedModel(() => [{ type: 'finish', reason: 'stop' }]) })
  const client = new ChatClient({ connection: stream((input) => agent.run(input)), onError })
  onTestFinished(() => void client.dispose())
  vi.stubGlobal('client', client)
  vi.stubGlobal('input', { files: [photo(2 ** 20)] })
  await importCode('habits', code)
  expect(told.mock.calls).toEqual([])
  expect(client.getSnapshot().messages.find(({ id }) => id === 'my-id')?.parts[1]?.type).toBe('file')

  const sendTwo = async (bytes: number) =>
    client.sendMessage({ text: 'Both', files: await readFiles([photo(bytes), photo(bytes)]) })
  expect((await sendTwo(0.7 * 2 ** 20)).status).toBe('sent')
  const refused = await sendTwo(2 ** 20)
  expect([refused.status, client.getSnapshot().error, onError.mock.calls]).toEqual(['refused', undefined, []])
  const { message = '' } = 'error' in refused ? refused.error : {}
  expect(message).toMatch(/^More than 2097152 bytes of JSON can't be sent\./)
  vi.stubGlobal('client', { sendMessage: async () => refused })
  await importCode('habits', code)
  expect(told.mock.calls).toEqual([[message]])
})

test('Streaming: the page and the routes, as they are shown; a reload in mid-reply runs each call once, and asks the model once for each reply', async () => {
  const blocks = blocksOf('docs/streaming.md')
  const routes = blocks.find(({ code }) => code.includes('export async function GET'))?.code ?? ''
  const page = blocks.find(({ file }) => file === 'kept.ts')?.code ?? ''
  let goOn = () => {}
  const gate = new Promise<void>((resolve) => {
    goOn = resolve
  })
  const execute = vi.fn(() => 'ok')
  const asked = vi.fn()
  const model = scriptedModel(async function* ({ messages }) {
    asked()
    if (messages.at(-1)?.role !== 'user') return yield { type: 'finish', reason: 'stop' }
    yield { type: 'text-delta', delta: 'I note that.' }
    await gate
    yield { type: 'tool-call', id: 'c1', name: 'note', arguments: '{}' }
    yield { type: 'finish', reason: 'tool_calls' }
  })
  const note = tool({ name: 'note', description: 'Notes.', input: z.object({}), execute })
  vi.stubGlobal('agent', createAgent({ model, tools: [note], warn: () => {} }))
  vi.stubGlobal('userId', async () => 'ann')
  const { GET, POST } = await importCode('streaming', routes)
  const records = new Map<string, string>()
  async function open(): Promise<{ kept: ChatClient; leave(): void }> {
    const gone = new AbortController()
    vi.stubGlobal('fetch', (url: string, { signal, ...init }: RequestInit) => {
      const signals = [gone.signal, ...(signal ? [signal] : [])]
      const request = new Request(`http://server.test${url}`, { ...init, signal: AbortSignal.any(signals) })
      return (init.method === 'POST' ? POST : GET)(request)
    })
    const stored: Persistence = {
      load: async (id) => JSON.parse(records.get(id) ?? 'null') ?? undefined,
      async save(id, record) {
        if (!gone.signal.aborted) records.set(id, JSON.stringify(record))
      },
      remove: async () => {},
    }
    // Node has no IndexedDB.
    vi.stubGlobal('indexedDbHere', () => persistent(stored, { saveEvery: 1 }))
    const code = page.replace(/^import .*indexed-db'\n/m, '').replace('indexedDb()', 'indexedDbHere()')
    expect(code).toContain('indexedDbHere()')
    const { kept } = await importCode('kept', code)
    await kept.restore()
    return { kept, leave: () => gone.abort() }
  }
  const before = await open()
  void before.kept.sendMessage('Note it.')
  await vi.waitFor(() => expect([...records.values()].join()).toContain('I note that.'))
  before.leave()
  const after = await open()
  goOn()
  await vi.waitFor(() => expect(after.kept.getSnapshot().isLoading).toBe(false))
  const calls = after.kept.getSnapshot().messages.flatMap(({ parts }) => parts)
  expect(calls.flatMap((part) => (part.type === 'tool-call' ? part.state : []))).toEqual(['complete'])
  expect(execute).toHaveBeenCalledTimes(1)
  expect(asked).toHaveBeenCalledTimes(2)
})

test('a server that has drained also closes the connections that a proxy keeps open, or it never ends', () => {
  const ends = guides.flatMap(blocksOf).filter(({ code }) => code.includes('server.close('))
  expect(ends.length).toBeGreaterThan(1)
  const waiting = ends.filter(({ code }) => !code.includes('server.closeAllConnections()'))
  expect(waiting.map(({ page, line }) => `${page}:${line}`)).toEqual([])
})

test('Deploy ends the sockets too: without that, one that a page keeps open keeps a server that has drained alive', async () => {
  const [, section = ''] = readPage('docs/deploy.md').split('## Shut down')
  const [, code = ''] = /```ts\n(for [\s\S]*?)```/.exec(section) ?? []
  expect(code).toContain('sockets')
  const server = createServer()
  const sockets = new WebSocketServer({ server })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  if (typeof address !== 'object' || address === null) throw new Error('The server has no port.')
  const page = new WebSocket(`ws://127.0.0.1:${address.port}`)
  onTestFinished(() => page.terminate())
  await once(page, 'open')
  const ended = new Promise((resolve) => server.close(resolve))
  server.closeAllConnections()
  new Function('sockets', code)(sockets)
  await ended
})

test('the agent on D1 keeps results as large as its limit, whatever is in them, and refuses a larger one by name: the conversation goes on', async () => {
  const { code = '' } =
    blocksOf('docs/edge.md').find(({ code }) => code.includes('export function agentFor')) ?? {}
  const database = new DatabaseSync(':memory:')
  const run = (text: string, values: (string | number)[]) => {
    const bytes = values.reduce<number>((sum, value) => sum + Buffer.byteLength(String(value)), 0)
    if (bytes > 2_000_000) throw new Error('D1_ERROR: string or blob too big: SQLITE_TOOBIG')
    return { results: database.prepare(text).all(...values) }
  }
  const DB = {
    prepare: (text: string) => ({
      bind: (...values: (string | number)[]) => ({ all: async () => run(text, values) }),
    }),
  }
  await ensureSchema(fromD1(DB))
  let result: string | readonly string[] = ''
  vi.stubGlobal('tools', [
    tool({ name: 'read', description: 'Reads.', input: z.object({}), execute: () => result }),
  ])
  const model = scriptedModel(({ messages }) => {
    if (messages.at(-1)?.role !== 'user') return [{ type: 'finish', reason: 'stop' }]
    const id = `call-${messages.length}`
    return [
      { type: 'tool-call', id, name: 'read', arguments: '{}' },
      { type: 'finish', reason: 'tool_calls' },
    ]
  })
  vi.stubGlobal('model', model)
  const { agentFor } = await importCode('edge', code)
  const agent: Agent = agentFor({ DB, COUNTERSIGN_SECRET: 'only for this test, 32 bytes long' })
  const connection = stream((input, { signal }) => agent.run(input, { signal, context: { subject: 'ann' } }))
  const client = new ChatClient({ connection, threadId: 'thread-1' })
  for (const [content, code] of [
    ['x'.repeat(890_000), undefined],
    [['"'.repeat(222_000)], undefined],
    [Array.from({ length: 148_000 }, () => 'x'), undefined],
    ['x'.repeat(1_990_000), 'result-too-large'],
    ['fine', undefined],
  ] as const) {
    result = content
    await client.sendMessage('Read it.')
    const { error, messages } = client.getSnapshot()
    const call = messages.flatMap(({ parts }) => parts).findLast((part) => part.type === 'tool-call')
    const size = JSON.stringify(content).length
    expect([size, error, call?.error?.code]).toEqual([size, undefined, code])
  }
})

test('the Docker image leaves out the secrets and the packages of the folder that it is built from', () => {
  const ignored = blocksOf('docs/deploy.md').find(({ file }) => file === '.dockerignore')
  expect(ignored?.code.split('\n')).toEqual(expect.arrayContaining(['node_modules', '.env*']))
})

test('a guide that shows a file of configuration says to keep what a new application has in it', () => {
  for (const name of ['nextjs', 'nuxt', 'solidstart']) {
    const [, configuration = ''] = readPage(`docs/${name}.md`).split('## The configuration')
    expect([name, configuration.split('```')[0]?.includes('keep the rest of')]).toEqual([name, true])
  }
})

test('code that makes a pool of pg gives it to fromPg, which listens to its errors: without that, a restart of the database ends the process', () => {
  const pools = writtenPages()
    .flatMap(blocksOf)
    .filter(({ code }) => code.includes('new Pool('))
  expect(pools.length).toBeGreaterThan(3)
  const used = writtenPages()
    .flatMap(blocksOf)
    .filter(({ code }) => code.includes('fromPg(pool)') && !code.includes('new Pool('))
  expect(used.map(({ page, line }) => `${page}:${line}`)).toEqual([])
  const deaf = pools.filter(({ code }) => !code.includes('fromPg(pool)'))
  expect(deaf.map(({ page, line }) => `${page}:${line}`)).toEqual([])
})

test('an example that opens SQLite has each commit written to the disk: without that, a power loss lets an answer run its call again', () => {
  const opened = writtenPages()
    .flatMap(blocksOf)
    .filter(({ code }) => code.includes('journal_mode = wal'))
  expect(opened.length).toBeGreaterThan(5)
  const forgetful = opened.filter(({ code }) => !code.includes('synchronous = full'))
  expect(forgetful.map(({ page, line }) => `${page}:${line}`)).toEqual([])
})

test('an example that opens SQLite waits for locks before it asks for anything: without that, processes that start together on a new file fail', () => {
  const opened = writtenPages()
    .flatMap(blocksOf)
    .filter(({ code }) => code.includes('journal_mode = wal'))
  expect(opened.length).toBeGreaterThan(5)
  const hasty = opened.filter(({ code }) => !code.includes("exec('pragma busy_timeout = 5000; "))
  expect(hasty.map(({ page, line }) => `${page}:${line}`)).toEqual([])
})

test('an example reads an empty number field as 0, which the schema refuses with words: NaN is refused before it is sent, and a page may not tell', () => {
  const silent = writtenPages()
    .flatMap(blocksOf)
    .filter(({ code }) => code.includes('valueAsNumber'))
  expect(silent.map(({ page, line }) => `${page}:${line}`)).toEqual([])
})

test('the page of a guide says that its connection was lost while it tries again', () => {
  const pages = writtenPages()
    .flatMap(blocksOf)
    .filter(({ code }) => code.includes('serverThreads(') && code.includes('unsentIn('))
  expect(pages.length).toBeGreaterThan(5)
  const silent = pages.filter(({ code }) => !code.includes("status === 'reconnecting'"))
  expect(silent.map(({ page, line }) => `${page}:${line}`)).toEqual([])
})

test('an agent that could not start, because its database was away, is started by the next request', () => {
  const started = writtenPages()
    .flatMap(blocksOf)
    .filter(({ code }) => code.includes('??= start()'))
  expect(started.length).toBeGreaterThan(3)
  const stuck = started.filter(({ code }) => !code.includes('??= start().catch('))
  expect(stuck.map(({ page, line }) => `${page}:${line}`)).toEqual([])
})

test('in every example, each button that answers a request or takes a message back ignores the second click of a double click, which nobody meant for the one that moves up', () => {
  /** Code that answers more often than it looks at a click, each with the reason. */
  const others = {
    "'@ai-sdk/react'": 'a page before its migration',
    onRespondToToolApproval: 'assistant-ui makes the buttons, and does not tell how they were clicked',
    'const onclick = (event: MouseEvent) => event.detail < 2 && act()': 'one function makes every button',
  }
  const answering = writtenPages()
    .flatMap(blocksOf)
    .filter(({ code }) => /<button|\bbutton\(|click/i.test(code))
    .filter(({ code }) => !Object.keys(others).some((other) => code.includes(other)))
    .map(({ page, line, code }) => ({
      place: `${page}:${line}`,
      answers: code.match(/\b(?:addToolApprovalResponses?|cancelQueued)\(/g)?.length ?? 0,
      // of a button that answers, or of one that submits a form that does
      looks: code.match(/event\.detail (?:< 2|> 1) && /g)?.length ?? 0,
    }))
    .filter(({ answers }) => answers > 0)
  expect(answering.length).toBeGreaterThan(20)
  const careless = answering.filter(({ answers, looks }) => looks < answers)
  expect(careless.map(({ place }) => place)).toEqual([])
})

test('every example that shows a conversation also shows the messages that wait for a run to end: else they seem lost', () => {
  /** A loop over the turns in each framework and without one, and turns that are given to somebody else's loop. */
  const loops = [
    /(?<!\.)\b(?:turns|messages|turnsOf\(messages\))\.(?:map|flatMap)\(/,
    / of (?:messages|turnsOf\(messages\))\)/,
    /<Index each=\{chat\.turns\}/,
    / in turns"/,
    /\{#each chat\.turns /,
    / messages: chat\.turns,/,
  ]
  /** A page before its migration. */
  const others = /'(?:@ai-sdk\/react|@tanstack\/ai-client)'/
  const shown = writtenPages()
    .flatMap(blocksOf)
    .filter(({ code }) => loops.some((loop) => loop.test(code)) && !others.test(code))
  expect(shown.length).toBeGreaterThan(15)
  const lost = shown.filter(({ code }) => !/\bqueue\b/.test(code) || !code.includes('queuedText('))
  expect(lost.map(({ page, line }) => `${page}:${line}`)).toEqual([])
})

test('what the user types into the edit form of an example stays while the page shows something else', () => {
  const pages = writtenPages().flatMap(blocksOf)
  const reset = pages.filter(({ language, code }) => {
    // Vue writes `:value` again with each rendering; Solid makes an element again for each new object, as each view is
    if (language === 'vue') return /<input[^>]* :value=/.test(code)
    return (
      code.includes("from 'solid-js") &&
      /<For each=\{(?!chat\.|choices)/.test(code) &&
      code.includes('approvalView(')
    )
  })
  expect(reset.map(({ page, line }) => `${page}:${line}`)).toEqual([])
})

test('an example that asks the question of an MCP server lets the user decline it', () => {
  const examples = writtenPages()
    .flatMap(blocksOf)
    .filter(({ code }) => code.includes('elicit:'))
  expect(examples.length).toBeGreaterThan(0)
  const forced = examples.filter(({ code }) => !code.includes("action: 'decline'"))
  expect(forced.map(({ page, line }) => `${page}:${line}`)).toEqual([])
})

test('the Nuxt route that the page fetches returns an object for a new conversation too: useFetch warns of an empty response', async () => {
  const route = 'examples/apps/nuxt/server/api/thread/[threadId].get.ts'
  const { code = '' } = blocksOf('docs/nuxt.md').find(({ file }) => file === route) ?? {}
  const agent = createAgent({ model: scriptedModel(() => []), tools: [], threads: memoryThreads() })
  vi.stubGlobal('defineEventHandler', (handler: unknown) => handler)
  vi.stubGlobal('getRouterParam', () => 'new')
  vi.stubGlobal('getAgent', () => agent)
  vi.stubGlobal('userId', () => 'ann')
  const { default: handler } = await importCode('nuxt', code)
  expect(await handler({})).toEqual({})
})
