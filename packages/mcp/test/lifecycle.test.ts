import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type McpElicitation, type McpTool, type McpToolsOptions, mcpTools } from '@countersign/mcp'
import { expect, test, vi } from 'vitest'
import { call, collect, input, results, say, testAgent, user } from '../../server/test/support.js'
import { afterwards, errorOf, overHttp, scriptOf, workspace } from './support.js'

const trusted = ['hang', 'work', 'die', 'change', 'ask']

const script = await scriptOf('packages/mcp/test/odd-server.process.ts')

async function connect(options: Partial<McpToolsOptions> = {}) {
  const log = join(await workspace(), 'log')
  const source = { command: process.execPath, args: [script, log] }
  const mcp = await mcpTools(source, { server: 'odd', trustAnnotations: trusted, ...options })
  afterwards(mcp.dispose)
  const logged = async () => (await readFile(log, 'utf8')).trim().split('\n')
  return { mcp, logged }
}

/** What the model is told of one call of a tool without arguments. */
async function outcome(tools: readonly McpTool[], name: string): Promise<unknown> {
  const { agent } = testAgent([call(['c1', `mcp__odd__${name}`, {}]), say('ok')], { tools })
  const [result] = results(await collect(agent, input([user('go')])))
  return result?.content
}

const texts = (...said: string[]) => ({ content: said.map((text) => ({ type: 'text', text })) })
const failure = (words: string) => ({ type: 'execution-error', reason: expect.stringContaining(words) })

test('a call that takes too long is cancelled on the server and is an honest failure', async () => {
  const { mcp, logged } = await connect({ timeout: 300 })
  const told = await outcome(mcp.tools, 'hang')
  expect(told).toMatchObject(failure('took too long'))
  expect(told).toMatchObject(failure('may or may not'))
  await vi.waitFor(async () => expect(await logged()).toEqual(['hang', 'cancelled']))
})

test('progress begins the timeout anew, up to the time in all', async () => {
  const { mcp } = await connect({ timeout: 900 })
  expect(await outcome(mcp.tools, 'work')).toMatchObject(texts('worked'))
  const bounded = await connect({ timeout: 900, maxTimeout: 700 })
  expect(await outcome(bounded.mcp.tools, 'work')).toMatchObject(failure('took too long'))
})

test('a server that ends in the middle of a call is started again for the next one, not for the same', async () => {
  const { mcp, logged } = await connect()
  expect(await outcome(mcp.tools, 'die')).toMatchObject(failure('went away while die ran'))
  expect(await outcome(mcp.tools, 'work')).toMatchObject(texts('worked'))
  expect(await logged()).toEqual(['die'])
})

test('a stream that could be taken up again, on a server that is gone, is an honest failure too', async () => {
  const log = join(await workspace(), 'log')
  const server = await overHttp(script, log)
  const mcp = await mcpTools(server.source, { server: 'odd', trustAnnotations: trusted })
  afterwards(mcp.dispose)
  const calling = outcome(mcp.tools, 'hang')
  await vi.waitFor(async () => expect(await readFile(log, 'utf8')).toBe('hang\n'))
  await server.kill()
  // Whether the response had begun when the server was gone decides how it is told; the effect is unknown in both cases.
  expect(await calling).toMatchObject(failure('It may or may not have had an effect, and was not run again.'))
  expect(await outcome(mcp.tools, 'hang')).toMatchObject(failure('could not be reached, and nothing ran'))
})

test('a tool that its server describes anew does not run as what it was', async () => {
  let changed: readonly McpTool[] = []
  const onToolsChanged = (tools: readonly McpTool[]) => {
    changed = tools
  }
  const { mcp } = await connect({ onToolsChanged, timeout: 900 })
  const before = mcp.tools
  expect(await outcome(before, 'change')).toMatchObject(texts('changed'))
  await vi.waitFor(() => expect(changed.map(({ description }) => description)).toContain('Harmless now'))
  expect(mcp.tools).toBe(changed)
  expect(await outcome(before, 'hang')).toMatchObject(failure('has changed or removed hang'))
  expect(await outcome(mcp.tools, 'hang')).toMatchObject(failure('took too long'))
  expect(await outcome(before, 'work')).toMatchObject(texts('worked'))
})

test('a question of the server is declined where nobody can be asked', async () => {
  const { mcp } = await connect()
  expect(await outcome(mcp.tools, 'ask')).toMatchObject(texts('{"action":"decline"}'))
})

test('elicit puts a question of the server to the person, and a failure to ask is no answer', async () => {
  const asked: McpElicitation[] = []
  const { mcp } = await connect({
    elicit: (question) => {
      asked.push(question)
      return { action: 'accept', content: { colour: 'red' } }
    },
  })
  expect(await outcome(mcp.tools, 'ask')).toMatchObject(
    texts('{"action":"accept","content":{"colour":"red"}}'),
  )
  expect(asked).toMatchObject([{ message: 'Which colour?', requestedSchema: { type: 'object' } }])
  const broken = await connect({
    warn: () => {},
    elicit: () => {
      throw new Error('nobody is there')
    },
  })
  expect(await outcome(broken.mcp.tools, 'ask')).toMatchObject(texts('{"action":"cancel"}'))
})

test('a server that cannot be started or reached is said so', async () => {
  const program = { command: join(import.meta.dirname, 'no-such-program') }
  expect(await errorOf(mcpTools(program, { server: 'a' }))).toMatchObject({ code: 'connection-failed' })
  const address = { url: 'http://127.0.0.1:9/mcp' }
  expect(await errorOf(mcpTools(address, { server: 'a' }))).toMatchObject({ code: 'connection-failed' })
  const nothing = { url: 'nowhere' }
  expect(await errorOf(mcpTools(nothing, { server: 'a' }))).toMatchObject({ code: 'invalid-option' })
})
