import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { clientTool } from '@countersign/core'
import { answerQueue, memoryLedger, memoryThreads } from '@countersign/server'
import { fileLedger } from '@countersign/server/node'
import { expect, onTestFinished, test } from 'vitest'
import * as z from 'zod'
import {
  ask,
  call,
  collect,
  input,
  refusals,
  requests,
  results,
  say,
  testAgent,
  types,
  user,
} from '../support.js'
import { diff, fileTool, writer, yes } from './world.js'

test('V12 a client tool: the server computes the preview, and again before it hands the call out', async () => {
  const world = { text: 'one' }
  const tool = {
    ...clientTool({
      name: 'write',
      description: 'Writes',
      input: z.looseObject({}),
      needsApproval: true,
      execute: () => ({}),
    }),
    preview: () => diff(world.text),
  }
  const { agent } = testAgent([call(['call_1', 'write', { text: 'new' }]), say('done')], { tools: [tool] })
  const { history, first } = await ask(agent)
  expect(first.approval.preview).toEqual(diff('one'))
  world.text = 'two'
  const events = await collect(agent, input(history, { resume: [yes(first)] }))
  expect(types(events)).not.toContain('CUSTOM client-tool-ready')
  const [second] = requests(events)
  if (second === undefined) throw new Error('not asked again')
  const ready = await collect(agent, input(history, { resume: [yes(second)] }))
  expect(types(ready)).toContain('CUSTOM client-tool-ready')
})

test('V4 with a live channel, the run asks again and waits for the new answer', async () => {
  const made = fileTool()
  const { agent, model } = writer(made)
  const answers = answerQueue()
  const seen: string[] = []
  for await (const event of agent.run(input([user('go')]), { answers })) {
    if (event.type === 'CUSTOM') seen.push(event.name)
    const [asked] = requests([event])
    if (asked === undefined) continue
    if (asked.approval.previous === undefined) made.world.text = 'two'
    answers.put(yes(asked))
  }
  expect(seen).toEqual(['approval-requested', 'approval-requested'])
  expect(made.approved).toEqual([diff('two')])
  expect(model.requests).toHaveLength(2)
})

test('V4 with a live channel in a later run, too', async () => {
  const made = fileTool()
  const { agent } = writer(made)
  const { history, first } = await ask(agent)
  const answers = answerQueue()
  const asked: unknown[] = []
  for await (const event of agent.run(input(history), { answers })) {
    const [one] = requests([event])
    if (one === undefined) continue
    asked.push(one.approval.preview)
    made.world.text = 'two'
    answers.put(yes(one))
  }
  expect(asked).toEqual([diff('one'), diff('two')])
  expect(made.approved).toEqual([diff('two')])
  expect(first.approval.preview).toEqual(diff('one'))
})

test('V10 after a restart with a ledger in a file, and on another day', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'previews-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  let now = Date.now()
  const open = async () => {
    const ledger = await fileLedger(join(folder, 'approvals.sqlite'), { now: () => now })
    onTestFinished(() => ledger.close())
    return ledger
  }
  const made = fileTool({ expiresIn: 'never' })
  const options = { now: () => now }
  const { history, first } = await ask(
    writer(made, { ...options, approvals: { ledger: await open() } }).agent,
  )
  now += 36 * 60 * 60 * 1000
  made.world.text = 'two'
  const second = testAgent([say('done')], {
    ...options,
    tools: [made.tool],
    approvals: { ledger: await open() },
  })
  const [asked] = requests(await collect(second.agent, input(history, { resume: [yes(first)] })))
  expect(asked?.approval).toMatchObject({ preview: diff('two'), previous: diff('one') })
  const third = testAgent([say('done')], {
    ...options,
    tools: [made.tool],
    approvals: { ledger: await open() },
  })
  // Another page, which knows only the first request.
  const [again] = requests(await collect(third.agent, input(history)))
  expect(again).toEqual(asked)
  if (again === undefined) return
  await collect(third.agent, input(history, { resume: [yes(again)] }))
  expect(made.approved).toEqual([diff('two')])
})

test('V4 a run that settled a request and died before it made the new one: the next run makes it', async () => {
  const made = fileTool()
  const ledger = memoryLedger()
  let dies = true
  const issue: typeof ledger.issue = (record) =>
    dies && record.earlier !== undefined ? Promise.reject(new Error('gone')) : ledger.issue(record)
  const { agent } = writer(made, { approvals: { ledger: { ...ledger, id: ledger.id, issue } } })
  const { history, first } = await ask(agent)
  made.world.text = 'two'
  // The ledger failed: the page that sent the answer gets approval-stale, and nothing has run.
  await collect(agent, input(history, { resume: [yes(first)] }))
  dies = false
  const [second] = requests(await collect(agent, input(history)))
  expect(second?.approval).toMatchObject({ preview: diff('two'), previous: diff('one') })
  if (second === undefined) return
  await collect(agent, input(history, { resume: [yes(second)] }))
  expect(made.approved).toEqual([diff('two')])
})

test('V4 V10 a conversation that the server keeps', async () => {
  const made = fileTool()
  const threads = memoryThreads()
  const { agent } = writer(made, { threads })
  const context = { subject: 'ann' }
  const events = await collect(agent, input([user('go')]), { context })
  const [first] = requests(events)
  if (first === undefined) throw new Error('not asked')
  made.world.text = 'two'
  const [second] = requests(await collect(agent, input([], { resume: [yes(first)] }), { context }))
  if (second === undefined) throw new Error('not asked again')
  expect(second.approval).toMatchObject({ preview: diff('two'), previous: diff('one') })
  await collect(agent, input([], { resume: [yes(second)] }), { context })
  expect(made.approved).toEqual([diff('two')])
})

test('V4 V10 a run that has lost its lease asks nobody again, because others were told that the call may have run', async () => {
  const ledger = memoryLedger()
  const { agent } = writer(fileTool(), { approvals: { ledger } })
  const { first } = await ask(agent)
  const ref = { owner: null, threadId: 'thread', approvalId: first.approval.id }
  await ledger.claim(ref, { decision: 'approve', scope: 'once' }, 'holder', 1)
  await expect.poll(async () => (await ledger.lookup(ref))?.state.phase).toBe('interrupted')
  const replaced = { type: 'cancelled', code: 'approval-stale', next: 'approval_next' } as const
  expect(await ledger.complete(ref, 'holder', replaced)).toEqual({ status: 'fenced' })
  expect((await ledger.lookup(ref))?.state.phase).toBe('interrupted')
})

test('V4 in a conversation that the server keeps, a page that shows the request that was replaced is led to the new one', async () => {
  const made = fileTool()
  const { agent } = writer(made, { threads: memoryThreads() })
  const { first } = await ask(agent)
  const send = (...resume: ReturnType<typeof yes>[]) => collect(agent, input([], { resume }))
  made.world.text = 'two'
  const [second] = requests(await send(yes(first)))
  if (second === undefined) throw new Error('not asked again')
  const approved = await send(yes(first))
  expect(types(approved)).toEqual(['RUN_STARTED', 'CUSTOM approval-requested', 'RUN_FINISHED'])
  expect(requests(approved)).toEqual([second])
  const denied = await send(yes(first, { approved: false }))
  expect(refusals(denied)).toMatchObject([
    { code: 'approval-conflict', message: expect.stringContaining('a new request has replaced it') },
  ])
  expect(requests(denied)).toEqual([second])
  // One page answers both: the answer to the request that is open counts.
  const done = await send(yes(second), yes(first, { approved: false }))
  expect(results(done)).toMatchObject([{ content: { done: true } }])
  expect(made.runs).toHaveLength(1)
  const late = await send(yes(first))
  expect(refusals(late)).toEqual([])
  const tooLate = await send(yes(first, { approved: false }))
  const message = 'This request was answered before (approve).'
  expect(refusals(tooLate)).toMatchObject([{ code: 'approval-conflict', message }])
  expect(made.runs).toHaveLength(1)
})
