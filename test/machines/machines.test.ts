import { resolve } from 'node:path'
import type { AGUIEvent, Message, ResumeEntry } from '@countersign/core'
import { afterAll, test as anyTest, expect } from 'vitest'
import { fold, input, refusals, requests, results, user } from '../../packages/server/test/support.js'
import { bundleForNode } from '../../scripts/bundle.mjs'
import { postgresForTests } from '../../scripts/postgres.mjs'
import { redisForTests } from '../../scripts/redis.mjs'
import type { Fault } from './proxy.js'
import { approve, callsOf, persist, please, twoMachines, until } from './two-machines.js'

const root = resolve(import.meta.dirname, '../..')
const redis = await redisForTests('two server processes behind a proxy, sharing Redis')
const postgres = await postgresForTests('two server processes behind a proxy, sharing PostgreSQL')
const script = await bundleForNode(`${root}/test/machines/server.process.ts`, root)
afterAll(async () => {
  await script.remove()
  await redis?.stop()
  await postgres?.stop()
})
const shared = [
  { name: 'Redis', isThere: redis !== undefined, url: { redis: redis?.url } },
  { name: 'PostgreSQL', isThere: postgres !== undefined, url: { postgres: postgres?.url } },
]

/** One request without a client, so that the same can be sent many times at once. */
async function post(url: string, messages: readonly Message[], resume: readonly ResumeEntry[] = []) {
  const response = await fetch(`${url}/chat`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(input(messages, resume.length > 0 ? { resume: [...resume] } : {})),
  })
  const frames = (await response.text()).split('\n').filter((text) => text.startsWith('data: '))
  return frames.map((text): AGUIEvent => JSON.parse(text.slice(6)))
}

const answerTo = (id = '', approved = true): ResumeEntry[] => [
  { interruptId: id, status: 'resolved', payload: { approved } },
]

for (const { name, isThere, url } of shared) {
  const test = (sentence: string, run: () => Promise<void>) =>
    anyTest.skipIf(!isThere)(`${sentence} (${name})`, run)
  const machines = (faults: readonly Fault[] = []) => twoMachines({ script: script.file, ...url, faults })

  test('asked on one process, answered on the other: the call runs once', async () => {
    const { chat, served, starts } = await machines()
    const page = chat()
    await page.sendMessage(please('a'))
    await persist(page, () => approve(page))
    expect(served()).toEqual(['one', 'other'])
    expect(callsOf(page)).toMatchObject([{ state: 'complete', output: { job: 'a' } }])
    expect(await starts()).toBe(1)
  })

  test('fifty answers at once on both processes, yes and no: one is taken, all of them are told which', async () => {
    const { proxy, starts } = await machines()
    const question = [user(please('a'))]
    const asking = await post(proxy.url, question)
    const id = requests(asking)[0]?.approval.id
    const history = fold(question, asking)
    const answers = Array.from({ length: 50 }, (_, index) =>
      post(proxy.url, history, answerTo(id, index % 3 > 0)),
    )
    const told = await Promise.all(answers)
    const contents = new Set(
      told.map((events) => JSON.stringify(results(events).map(({ content }) => content))),
    )
    const refused = told.map((events, index) => [index % 3 > 0, refusals(events)[0]?.code] as const)
    const approved = (await starts()) === 1
    expect(contents.size).toBe(1)
    expect([...contents][0]).toContain(approved ? '"job":"a"' : 'execution-denied')
    for (const [yes, code] of refused) expect(code).toBe(yes === approved ? undefined : 'approval-conflict')
    await post(proxy.url, history, answerTo(id))
    expect(await starts()).toBe(approved ? 1 : 0)
  })

  test('a session approval given on one process holds on the other, and ends for both', async () => {
    const { chat, served, starts } = await machines()
    const page = chat()
    await page.sendMessage(please('a'))
    await persist(page, () => approve(page, 'session'))
    await page.sendMessage(please('b'))
    await page.sendMessage(please('c'))
    expect([served(), await starts()]).toEqual([['one', 'other', 'one', 'other'], 3])
    expect(await chat('request', 'ann').grants()).toMatchObject([{ toolName: 'work' }])
    expect(await chat('request', 'bob').grants()).toEqual([])
    expect(await page.revokeGrant()).toBe(1)
    for (const job of ['d', 'e']) {
      await page.sendMessage(please(job))
      expect(page.getSnapshot().pendingApprovals.length).toBe(1)
    }
    expect(await starts()).toBe(3)
  })

  test('an answer that reaches the other process goes into the run that is open', async () => {
    const { chat, served, starts } = await machines()
    const page = chat('live')
    void page.sendMessage(please('a'))
    await until(page, ({ pendingApprovals }) => pendingApprovals.length > 0)
    await persist(page, () => approve(page))
    await expect.poll(served).toEqual(['one', 'other'])
    expect([callsOf(page).map(({ state }) => state), await starts()]).toEqual([['complete'], 1])
  })

  for (const kind of ['unsent', 'unanswered'] as const) {
    test(`an answer into an open run whose connection breaks (${kind}) is delivered again`, async () => {
      const { chat, starts } = await machines([{ kind: 'none' }, { kind }])
      const page = chat('live')
      void page.sendMessage(please('a'))
      await until(page, ({ pendingApprovals }) => pendingApprovals.length > 0)
      await persist(page, () => approve(page))
      expect([callsOf(page).map(({ state }) => state), await starts()]).toEqual([['complete'], 1])
    })
  }

  test('a run that one process streams is taken up on the other, and only by its own user', async () => {
    const { one, other, chat, proxy, served, starts } = await machines()
    const page = chat('live')
    void page.sendMessage(please('a'))
    await until(page, ({ pendingApprovals }) => pendingApprovals.length > 0)
    const runId = page.inspect().openRun ?? ''
    proxy.cut()
    await until(page, ({ status }) => status === 'error')
    for (const { url } of [one, other]) {
      const headers = { 'x-user': 'bob' }
      const stranger = await fetch(`${url}/live?${new URLSearchParams({ threadId: 'thread', runId })}`, {
        headers,
      })
      expect(stranger.status).toBe(204)
    }
    void page.retry()
    await expect.poll(served).toEqual(['one', 'other'])
    await persist(page, () => approve(page))
    expect([callsOf(page).map(({ state }) => state), await starts()]).toEqual([['complete'], 1])
    expect(page.getSnapshot().messages.map(({ role }) => role)).toEqual(['user', 'assistant', 'assistant'])
  })
}
