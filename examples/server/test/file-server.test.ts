import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AGUIEvent, Message, ResumeEntry } from '@countersign/core'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { fold, input, requests, results, user } from '../../../packages/server/test/support.js'
import { bundleForNode } from '../../../scripts/bundle.mjs'
import { demoAgent } from '../src/agent.js'
import { openFileServer } from '../src/file-server.js'
import { fillOnce } from '../src/samples.js'

const example = join(import.meta.dirname, '../../mcp-server')
const script = await bundleForNode(join(example, 'src/main.ts'), example)
afterAll(script.remove)

/** The demo with its planner and its MCP server, on a new folder. */
async function demo(...more: string[]) {
  const parent = await mkdtemp(join(tmpdir(), 'countersign-files-'))
  const workspace = join(parent, 'workspace')
  await fillOnce(workspace, Date.now())
  const files = await openFileServer(workspace, script.file, more)
  const agent = await demoAgent({ workspace, state: parent, tools: files.tools, delay: 0 })
  onTestFinished(async () => {
    await files.dispose()
    await rm(parent, { recursive: true })
  })
  let history: Message[] = []
  async function say(
    text: string | undefined,
    resume?: ResumeEntry[],
    each: (event: AGUIEvent) => void = () => {},
  ) {
    const messages = text === undefined ? history : [...history, user(text)]
    const events: AGUIEvent[] = []
    const given = input(messages, resume === undefined ? {} : { resume })
    for await (const event of agent.run(given, { context: { subject: 'single-user' } })) {
      events.push(event)
      each(event)
    }
    history = fold(messages, events)
    const said = events.map((event) => (event.type === 'TEXT_MESSAGE_CONTENT' ? event.delta : '')).join('')
    return { events, said, asked: requests(events) }
  }
  return { workspace, files, say }
}

const yes = (interruptId = ''): ResumeEntry[] => [
  { interruptId, status: 'resolved', payload: { approved: true } },
]

/** The processes that run the server on this folder. */
function servers(workspace: string): number[] {
  const lines = execFileSync('ps', ['-eo', 'pid=,args='], { encoding: 'utf8' }).split('\n')
  return lines.filter((line) => line.includes(script.file) && line.includes(workspace)).map(Number.parseFloat)
}

test('what only reads runs unasked on the MCP server, and the planner tells what came back', async () => {
  const { say, workspace } = await demo()
  expect((await say('Measure the files in reports')).said).toMatch(/^reports: 3 files, \d+ lines, /)
  expect((await say('Find duplicate files')).said).toBe('No two files are alike.')
  await writeFile(join(workspace, 'copy.md'), await readFile(join(workspace, 'todo.md')))
  const found = await say('Find duplicate files')
  expect(found.said).toContain('- `copy.md`, `todo.md`')
  expect(found.asked).toEqual([])
})

test('what changes a file is asked about: the demo says so of a line, the server of a folder', async () => {
  const { say, workspace } = await demo()
  const line = await say('Add "Call Mara" to todo.md')
  expect(line.asked).toMatchObject([
    { toolName: 'mcp__files__append_line', approval: { allowEdits: ['line'] } },
  ])
  expect(await readFile(join(workspace, 'todo.md'), 'utf8')).not.toContain('Mara')
  expect((await say(undefined, yes(line.asked[0]?.approval.id))).said).toContain('Added a line to todo.md.')
  expect(await readFile(join(workspace, 'todo.md'), 'utf8')).toMatch(/Call Mara\n$/)

  const clear = await say('Clear the folder logs')
  expect(clear.asked[0]?.approval.message).toContain(
    'The server says of it: "Deletes all files of a folder for good."',
  )
  expect((await say(undefined, yes(clear.asked[0]?.approval.id))).said).toContain('Deleted 5 files in logs.')
  expect(await readdir(join(workspace, 'logs'))).toEqual([])
})

test('a server that dies in mid-call is a failed result in words, and the next call starts it again', async () => {
  const { say, workspace } = await demo('--pause', '300')
  const { asked } = await say('Clear the folder logs')
  const died = await say(undefined, yes(asked[0]?.approval.id), (event) => {
    if (event.type === 'CUSTOM' && event.name === 'tool-progress')
      for (const pid of servers(workspace)) process.kill(pid, 'SIGKILL')
  })
  expect(results(died.events)).toMatchObject([{ content: { type: 'execution-error' } }])
  expect(died.said).toMatch(
    /Could not clear logs: The MCP server files went away while clear_folder ran.*may or may not/,
  )
  expect((await say('Measure the files in reports')).said).toMatch(/^reports: 3 files/)
})

test('the server ends with the demo', async () => {
  const { files, workspace } = await demo()
  expect(servers(workspace)).toHaveLength(1)
  await files.dispose()
  await expect.poll(() => servers(workspace)).toEqual([])
  expect(existsSync(workspace)).toBe(true)
})

test('without the server the planner says so instead of trying', async () => {
  const parent = await mkdtemp(join(tmpdir(), 'countersign-files-'))
  onTestFinished(() => rm(parent, { recursive: true }))
  const workspace = join(parent, 'workspace')
  await fillOnce(workspace, Date.now())
  const agent = await demoAgent({ workspace, state: parent, delay: 0 })
  const { text } = await agent.generate(input([user('Find duplicate files')]))
  expect(text).toContain('needs the MCP server of the demo')
})
