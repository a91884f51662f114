import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createServer } from 'node:http'
import { dirname, join } from 'node:path'
import { toNodeHandler } from '@countersign/server/node'
import { afterAll, expect, test } from 'vitest'
import { demoAgent } from '../../server/src/agent.js'
import { fillOnce } from '../../server/src/samples.js'
import { buildProgram } from './program.js'

const program = await buildProgram()
afterAll(program.remove)

const DELETE = 'Delete reports/budget.csv'

async function piped(args: readonly string[], input: string | undefined) {
  const folder = await program.newFolder()
  const ended = await program.pipe(['--folder', folder, ...args], input)
  return { ...ended, exists: (path: string) => existsSync(join(folder, path)) }
}

test('E.14 S3.106 piped input: a request is denied with a clear line, and the program ends with 3', async () => {
  const { code, output, exists } = await piped([], `${DELETE}\n`)
  expect(output).toContain('delete_file')
  expect(output).toContain('Denied: there is no terminal to ask in.')
  expect(output).toContain('Kept reports/budget.csv')
  expect([code, exists('reports/budget.csv')]).toEqual([3, true])
})

test('a reader that ends early, such as head, ends the program without a stack trace, and nothing runs', async () => {
  const folder = await program.newFolder()
  const { code, errors } = await program.pipe(['--folder', folder], `${DELETE}\n`, true)
  expect([code, errors]).toEqual([1, ''])
  expect(existsSync(join(folder, 'reports/budget.csv'))).toBe(true)
})

test('E.14 S3.106 a line of piped input is a message, never an answer', async () => {
  const { code, output, exists } = await piped([], `${DELETE}\ny\n`)
  expect(output).toContain('> y\n')
  expect([code, exists('reports/budget.csv')]).toEqual([3, true])
})

test('S3.106 --yes-to lets the named tool run, and no other', async () => {
  const { code, output, exists } = await piped(
    ['--yes-to', 'delete_file'],
    `${DELETE}\nRename todo.md to a.md\n`,
  )
  expect(output).toContain('Approved once: --yes-to.')
  expect([code, exists('reports/budget.csv'), exists('todo.md')]).toEqual([3, false, true])
})

test('S3.106 with --once and an input that stays open the program ends by itself', async () => {
  const { code, exists } = await piped(['--once', DELETE], undefined)
  expect([code, exists('reports/budget.csv')]).toEqual([3, true])
})

test('E.14 S3.106 an empty input ends at once', async () => {
  expect((await piped([], '')).code).toBe(0)
})

test('S3.108 no control sequence of an argument reaches the output', async () => {
  const { output } = await piped([], 'Write "\u001b[2J\u001b]0;x\u0007\u202e" to door.txt\n')
  expect(output).toContain('⟨U+001B⟩[2J')
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not be there
  expect(output).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/)
})

test('S3.105 with --url the agent is on a server, and the continuation is shown', async () => {
  const folder = await program.newFolder()
  await fillOnce(folder, Date.now())
  const agent = await demoAgent({ workspace: folder, state: join(dirname(folder), 'state'), delay: 0 })
  const handler = toNodeHandler(agent, { context: () => ({ subject: 'single-user' }) })
  const server = createServer(handler).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : undefined
  const args = ['--url', `http://127.0.0.1:${port}/chat`, '--yes-to', 'delete_file', '--once', DELETE]
  const { code, output } = await program.pipe(args, undefined)
  server.close()
  expect(output).toContain('Deleted reports/budget.csv')
  expect([code, existsSync(join(folder, 'reports/budget.csv'))]).toEqual([0, false])
})

test('what goes wrong has its exit code: 1 for a run that failed, 2 for a wrong call', async () => {
  const failed = await program.pipe(['--url', 'http://127.0.0.1:1/chat', '--once', 'hello'], undefined)
  expect(failed).toMatchObject({ code: 1, output: expect.stringContaining('could not be reached') })
  const wrong = await program.pipe(['--url', 'ftp://a'], undefined)
  expect(wrong).toMatchObject({ code: 2, errors: expect.stringContaining('--url must be') })
})
