import { clientTool } from '@countersign/core'
import { answerQueue } from '@countersign/server'
import { expect, test } from 'vitest'
import * as z from 'zod'
import { ask, call, collect, input, requests, say, testAgent, types, user } from '../support.js'
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
