import type { Message } from '@countersign/core'
import { type AnswerQueue, answerQueue, type ScriptedModel, scriptedModel, tool } from '@countersign/server'
import { isToolOutput, type PlanEvent } from '@countersign/server/plan'
import { expect, test, vi } from 'vitest'
import * as z from 'zod'
import { liveConversation, type TurnEvent } from '../src/live-verdicts.js'
import { calls, says } from '../src/script.js'

vi.spyOn(console, 'warn').mockImplementation(() => {})

type Shown = PlanEvent | TurnEvent

const named = (name: string) =>
  tool({ name, description: name, input: z.object({}), execute: () => `${name} done` })
const tools = ['search', 'send', 'delete'].map(named)

function start(model: ScriptedModel, answers: AnswerQueue, onEvent: (event: Shown) => void = () => {}) {
  const shown: Shown[] = []
  const conversation = liveConversation('Do it.', {
    model,
    tools,
    needsApproval: ({ toolName }) => toolName !== 'search',
    answers,
    show: (event) => {
      shown.push(event)
      onEvent(event)
    },
  })
  return { shown, conversation }
}

const answer = (answers: AnswerQueue, interruptId: string, approved: boolean, reason?: string) =>
  answers.put({ interruptId, status: 'resolved', payload: { approved, reason } })

const outputs = (messages: readonly Message[]) =>
  messages.flatMap((message) => (message.role === 'tool' ? [message.toolCallId] : []))

/** Lets everything that is ready happen. */
const settled = () => new Promise((resolve) => setTimeout(resolve, 5))

test('S2.27 two gated calls: with one verdict the model is not called again, with the second it is', async () => {
  const model = scriptedModel([calls(['c1', 'send', {}], ['c2', 'delete', {}]), says('Both done.')])
  const answers = answerQueue()
  const { conversation, shown } = start(model, answers)
  await answer(answers, 'c1', true)
  await vi.waitFor(() => expect(shown.filter(({ type }) => type === 'output').length).toBe(1))
  await settled()
  expect(model.requests.length).toBe(1)
  await answer(answers, 'c2', true)
  await conversation
  expect(model.requests.length).toBe(2)
})

test('S2.28 S2.36 three turns with simulated verdicts: requests, results and turns as they come', async () => {
  const model = scriptedModel([
    calls(['c-search', 'search', {}], ['c-send', 'send', {}]),
    calls(['c-del', 'delete', {}]),
    says('Sent, and nothing deleted.'),
  ])
  const answers = answerQueue()
  const { conversation, shown } = start(model, answers, (event) => {
    if (event.type !== 'approval-requested') return
    const approve = event.toolCallId === 'c-send'
    setTimeout(
      () => void answer(answers, event.toolCallId, approve, approve ? undefined : 'Out of scope.'),
      5,
    )
  })
  const history = await conversation
  const requested = shown.flatMap((event) => (event.type === 'approval-requested' ? [event.toolCallId] : []))
  expect(requested).toEqual(['c-send', 'c-del'])
  expect(outputs(history)).toEqual(['c-search', 'c-send', 'c-del'])
  expect(shown.flatMap((event) => (event.type === 'output' ? [event.outcome] : []))).toEqual([
    { kind: 'ok', value: 'search done' },
    { kind: 'ok', value: 'send done' },
    { kind: 'denied', reason: 'Out of scope.' },
  ])
  const turns = shown.flatMap((event) => (event.type === 'turn' ? [event.stopReason] : []))
  expect(turns).toEqual(['tool_calls', 'tool_calls', 'stop'])
  expect(model.requests[2]?.messages.at(-1)?.content).toMatchObject([
    { toolCallId: 'c-del', outcome: { kind: 'denied', reason: 'Out of scope.' } },
  ])
  expect(history.at(-1)).toMatchObject({ role: 'assistant', content: 'Sent, and nothing deleted.' })
})

test('S2.30 a verdict that comes before the turn that makes its call is kept for it', async () => {
  const model = scriptedModel([calls(['c1', 'send', {}]), calls(['c2', 'delete', {}]), says('Done.')])
  const answers = answerQueue()
  const { conversation } = start(model, answers)
  void answer(answers, 'c2', true)
  await settled()
  await answer(answers, 'c1', true)
  expect(outputs(await conversation)).toEqual(['c1', 'c2'])
})

test('S2.32 when the connection goes, what waits is cancelled and the model is told; the history is whole', async () => {
  const model = scriptedModel([calls(['c1', 'send', {}], ['c2', 'delete', {}]), says('Nothing was decided.')])
  const answers = answerQueue()
  const { conversation, shown } = start(model, answers)
  await settled()
  answers.close()
  const history = await conversation
  expect(outputs(history)).toEqual(['c1', 'c2'])
  expect(
    shown
      .filter((event): event is Extract<Shown, { type: 'output' }> => event.type === 'output')
      .every((event) => isToolOutput(event) && event.outcome.kind === 'cancelled'),
  ).toBe(true)
})

test('S2.6 a turn without calls ends the conversation; nothing is planned', async () => {
  const model = scriptedModel([says('Hello.')])
  let asked = 0
  const history = await liveConversation('Hi.', {
    model,
    tools,
    needsApproval: () => {
      asked++
      return true
    },
    answers: answerQueue(),
    show: () => {},
  })
  expect([history.length, asked, model.requests.length]).toEqual([2, 0, 1])
})
