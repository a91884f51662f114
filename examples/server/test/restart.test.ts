import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AGUIEvent, Message, ResumeEntry } from '@countersign/core'
import { afterAll, expect, test } from 'vitest'
import { fold, input, refusals, requests, results, user } from '../../../packages/server/test/support.js'
import { bundleForNode } from '../../../scripts/bundle.mjs'
import { secretIn } from '../src/secret.js'

const script = await bundleForNode(
  join(import.meta.dirname, 'demo.process.ts'),
  join(import.meta.dirname, '..'),
)
const parent = await mkdtemp(join(tmpdir(), 'countersign-restart-'))
const running = new Set<() => Promise<void>>()
afterAll(async () => {
  for (const kill of running) await kill()
  await script.remove()
  await rm(parent, { recursive: true })
})
const newFolder = () => mkdtemp(join(parent, 'demo-'))

/** The demo's server as a process; `kill` ends it as kill -9 does. */
async function start(folder: string) {
  const child = spawn(process.execPath, [script.file, folder], { stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(child, 'exit')
  const [line] = await Promise.race([
    once(child.stdout, 'data'),
    ended.then(() => Promise.reject(new Error('The server ended before it listened.'))),
  ])
  const url = String(line).trim()
  const kill = async () => {
    running.delete(kill)
    child.kill('SIGKILL')
    await ended
  }
  running.add(kill)

  async function post(messages: readonly Message[], resume?: readonly ResumeEntry[]) {
    const body = JSON.stringify(input(messages, resume === undefined ? {} : { resume: [...resume] }))
    const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body }
    // Another run may have the conversation: a page waits for its end, too.
    let response = await fetch(`${url}/chat`, init)
    while (response.status === 409) response = await fetch(`${url}/chat`, init)
    const frames = (await response.text()).split('\n').filter((text) => text.startsWith('data: '))
    const events = frames.map((text): AGUIEvent => JSON.parse(text.slice(6)))
    return { events, history: fold(messages, events) }
  }
  const grants = async (method = 'GET'): Promise<unknown> =>
    (await fetch(`${url}/grants?threadId=thread`, { method })).json()
  return { post, grants, kill }
}

async function ask(server: Awaited<ReturnType<typeof start>>, text: string, before: readonly Message[] = []) {
  const { events, history } = await server.post([...before, user(text)])
  return { history, asked: requests(events), ran: results(events) }
}

/** The results of calls that the page has after a reply: those it brings, and those of the stored conversation that it begins with. */
function outcomes(events: readonly AGUIEvent[]): readonly unknown[] {
  const stored = events.flatMap((event) => (event.type === 'MESSAGES_SNAPSHOT' ? event.messages : []))
  const before = stored.flatMap((message) =>
    message.role === 'tool' ? [JSON.parse(String(message.content))] : [],
  )
  return [...before, ...results(events).map(({ content }) => content)]
}

const yes = (approvalId = '', scope: 'once' | 'session' = 'once'): ResumeEntry[] => [
  { interruptId: approvalId, status: 'resolved', payload: { approved: true, scope } },
]

test('E.9 S3.79 asked, kill -9, restarted, answered: the call runs once, and a repeat after one more kill gets the same result', async () => {
  const folder = await newFolder()
  const file = join(folder, 'workspace/reports/budget.csv')
  const first = await start(folder)
  const { asked, history } = await ask(first, 'Delete reports/budget.csv')
  expect([asked.length, existsSync(file)]).toEqual([1, true])
  await first.kill()

  const second = await start(folder)
  const answer = yes(asked[0]?.approval.id)
  const answered = await second.post(history, answer)
  const [result] = results(answered.events)
  expect([result?.content, existsSync(file), refusals(answered.events)]).toMatchObject([
    { path: 'reports/budget.csv' },
    false,
    [],
  ])
  await second.kill()

  const third = await start(folder)
  const repeated = await third.post(history, answer)
  expect(outcomes(repeated.events)).toEqual([result?.content])
  const contrary: ResumeEntry[] = [
    { interruptId: asked[0]?.approval.id ?? '', status: 'resolved', payload: { approved: false } },
  ]
  const contradicted = await third.post(history, contrary)
  expect(refusals(contradicted.events)).toMatchObject([{ code: 'approval-conflict' }])
  await third.kill()
})

test('S3.20 a session approval is still honoured by a new process after kill -9', async () => {
  const folder = await newFolder()
  const first = await start(folder)
  const { asked, history } = await ask(first, 'Rename todo.md to tasks.md')
  const answered = await first.post(history, yes(asked[0]?.approval.id, 'session'))
  await first.kill()

  const second = await start(folder)
  expect(await second.grants()).toMatchObject({ grants: [{ toolName: 'move_file' }] })
  const next = await ask(second, 'Rename tasks.md to list.md', answered.history)
  expect([next.asked.length, next.ran.length]).toEqual([0, 1])
  expect(await readdir(join(folder, 'workspace'))).toContain('list.md')
  await second.kill()
})

test('S3.21 revoked, kill -9, and a request with the old history in a new process is asked about again', async () => {
  const folder = await newFolder()
  const first = await start(folder)
  const { asked, history } = await ask(first, 'Rename todo.md to tasks.md')
  const answered = await first.post(history, yes(asked[0]?.approval.id, 'session'))
  expect(await first.grants('DELETE')).toEqual({ revoked: 1 })
  await first.kill()

  const second = await start(folder)
  const next = await ask(second, 'Rename tasks.md to list.md', answered.history)
  expect([next.asked.length, next.ran.length]).toEqual([1, 0])
  const again = await second.post(history, yes(asked[0]?.approval.id, 'session'))
  expect(refusals(again.events)).toEqual([])
  expect(await second.grants()).toEqual({ grants: [] })
  await second.kill()
})

test('several processes of the demo share one secret and one database: asked on one, answered on another', async () => {
  const folder = await newFolder()
  const servers = await Promise.all([start(folder), start(folder), start(folder)])
  const [one, other] = servers
  if (one === undefined || other === undefined) throw new Error('too few servers')
  const { asked, history } = await ask(one, 'Delete reports/budget.csv')
  const answers = [other, one, other].map((server) => server.post(history, yes(asked[0]?.approval.id)))
  const [first, ...others] = (await Promise.all(answers)).map(({ events }) => outcomes(events))
  expect(first).toMatchObject([{ path: 'reports/budget.csv' }])
  expect(others).toEqual([first, first])
  await Promise.all(servers.map(({ kill }) => kill()))
})

test('the secret is made once, whole and for its user only', async () => {
  const file = join(await newFolder(), 'state/secret')
  const secrets = await Promise.all(Array.from({ length: 20 }, () => secretIn(file)))
  expect([new Set(secrets).size, await readFile(file, 'utf8')]).toEqual([1, secrets[0]])
  expect(Buffer.from(secrets[0] ?? '', 'base64url').length).toBe(32)
  if (process.platform !== 'win32') expect((await stat(file)).mode & 0o777).toBe(0o600)
  expect(await readdir(join(file, '..'))).toEqual(['secret'])
})
