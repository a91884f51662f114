import type { AGUIEvent, ToolContext, ToolQuestion, ToolReply } from '@countersign/core'
import { answerQueue, type RunOptions } from '@countersign/server'
import { expect, test } from 'vitest'
import * as z from 'zod'
import {
  call,
  collect,
  counted,
  input,
  last,
  requests,
  results,
  say,
  testAgent,
  types,
  user,
} from './support.js'

const colour = { message: 'Which colour?', answer: z.object({ colour: z.enum(['red', 'blue']) }) }

/** A tool that asks, and keeps what it was told. */
function asking(question: ToolQuestion = colour, more: { readonly timeout?: number } = {}) {
  const replies: ToolReply[] = []
  const contexts: ToolContext[] = []
  const { tool } = counted('paint', {
    ...more,
    execute: async (_, context) => {
      contexts.push(context)
      const reply = await context.ask(question)
      replies.push(reply)
      return reply
    },
  })
  return { tool, replies, contexts }
}

interface Question {
  readonly id: string
  readonly reason: string
  readonly message: string
  readonly toolCallId?: string
  readonly responseSchema: Record<string, unknown>
  readonly metadata: { readonly countersign: Record<string, unknown> }
}

const custom = (events: readonly AGUIEvent[], name: string) =>
  events.flatMap((event) => (event.type === 'CUSTOM' && event.name === name ? [event.value] : []))
const questions = (events: readonly AGUIEvent[]): Question[] => custom(events, 'interrupt-requested')

function live(
  paint: ReturnType<typeof asking>,
  options: RunOptions = {},
  more: Parameters<typeof testAgent>[1] = {},
) {
  const { agent } = testAgent([call(['c1', 'paint', {}]), say('ok')], { tools: [paint.tool], ...more })
  const answers = answerQueue()
  const events: AGUIEvent[] = []
  const done = (async () => {
    for await (const event of agent.run(input([user('go')]), { answers, ...options })) events.push(event)
  })()
  const asked = async (count = 1): Promise<Question> => {
    await expect.poll(() => questions(events).length).toBe(count)
    const question = questions(events)[count - 1]
    if (question === undefined) throw new Error('nothing was asked')
    return question
  }
  return { answers, events, done, asked }
}

const answered = ({ id }: Question, payload: unknown) => ({
  interruptId: id,
  status: 'resolved' as const,
  payload,
})

test('a running tool asks the person, and the answer goes to the tool while the run is open', async () => {
  const paint = asking()
  const run = live(paint)
  const question = await run.asked()
  expect(question).toMatchObject({
    id: expect.stringMatching(/^question_[\w-]{22}$/),
    reason: 'input_required',
    message: 'Which colour?',
    responseSchema: { type: 'object', properties: { colour: { enum: ['red', 'blue'] } } },
    metadata: { countersign: { askedBy: { toolCallId: 'c1', toolName: 'paint' } } },
  })
  // an interrupt that named the call would be a request for its approval
  expect(question.toolCallId).toBeUndefined()
  expect(await run.answers.put(answered(question, { colour: 'red' }))).toEqual({ status: 'taken' })
  await run.done
  const reply = { action: 'accept', content: { colour: 'red' } }
  expect(paint.replies).toEqual([reply])
  expect(results(run.events)).toMatchObject([{ id: 'c1', content: reply }])
  expect(custom(run.events, 'interrupt-closed')).toEqual([{ id: question.id, action: 'accept' }])
  expect(last(run.events)).toMatchObject({ outcome: { type: 'success' } })
})

test('an answer that does not fit is refused with what is wrong, and the question stays', async () => {
  const paint = asking()
  const run = live(paint)
  await run.answers.put(answered(await run.asked(), { colour: 'green' }))
  const again = await run.asked(2)
  expect(again.metadata.countersign.problem).toMatch(/colour/)
  expect(paint.replies).toEqual([])
  await run.answers.put(answered(again, { colour: 'blue', more: 'x' }))
  await run.done
  expect(new Set(questions(run.events).map(({ id }) => id)).size).toBe(1)
  expect(paint.replies).toEqual([{ action: 'accept', content: { colour: 'blue' } }])
})

test('a person who says no declines', async () => {
  const paint = asking()
  const run = live(paint)
  await run.answers.put({ interruptId: (await run.asked()).id, status: 'cancelled' })
  await run.done
  expect(paint.replies).toEqual([{ action: 'decline', reason: 'The user declined.' }])
})

test('without a live channel nobody is asked: declined at once, with the reason, and the application is warned', async () => {
  const paint = asking()
  const warnings: string[] = []
  const { agent } = testAgent([call(['c1', 'paint', {}]), say('ok')], {
    tools: [paint.tool],
    warn: (message) => void warnings.push(message),
  })
  const events = await collect(agent, input([user('go')]))
  expect(types(events)).not.toContain('CUSTOM interrupt-requested')
  expect(paint.replies).toMatchObject([
    { action: 'decline', reason: expect.stringContaining('The user was not asked') },
  ])
  expect(warnings.at(-1)).toContain('takes no answers while it is open')
})

test('a question ends with its tool, with the run, and when it is withdrawn: nothing waits for ever', async () => {
  const late = asking(colour, { timeout: 50 })
  const timedOut = live(late)
  await timedOut.done
  expect(results(timedOut.events)).toMatchObject([{ own: { outcome: 'error', code: 'interrupted' } }])
  expect(custom(timedOut.events, 'interrupt-closed')).toMatchObject([{ action: 'cancel' }])
  expect(types(timedOut.events).at(-1)).toBe('RUN_FINISHED')

  const stop = new AbortController()
  const stopped = live(asking(), { signal: stop.signal })
  await stopped.asked()
  stop.abort()
  await stopped.done
  expect(custom(stopped.events, 'interrupt-closed')).toMatchObject([{ action: 'cancel' }])
  expect(last(stopped.events)).toMatchObject({ outcome: { type: 'cancelled' } })

  const withdrawing = new AbortController()
  const paint = asking({ ...colour, signal: withdrawing.signal })
  const withdrawn = live(paint)
  await withdrawn.asked()
  withdrawing.abort()
  await withdrawn.done
  expect(paint.replies).toMatchObject([{ action: 'cancel' }])
  expect(last(withdrawn.events)).toMatchObject({ outcome: { type: 'success' } })
})

test('an approved call asks too, and its question goes on with nobody once its reader has gone', async () => {
  const paint = asking()
  const { agent } = testAgent([call(['c1', 'paint', {}]), say('ok')], {
    tools: [{ ...paint.tool, needsApproval: true }],
  })
  const answers = answerQueue()
  const gone = new AbortController()
  const run = agent.run(input([user('go')]), {
    answers,
    disconnected: gone.signal,
    context: { subject: 'ada' },
  })
  const events: AGUIEvent[] = []
  for await (const event of run) {
    events.push(event)
    const [asked] = requests([event])
    if (asked !== undefined) {
      const { id: interruptId, token } = asked.approval
      const metadata = { countersign: { token } }
      void answers.put({ interruptId, status: 'resolved', payload: { approved: true }, metadata })
    }
    if (questions([event]).length > 0) gone.abort()
  }
  expect(paint.replies).toMatchObject([{ action: 'cancel' }])
  expect(results(events)).toMatchObject([{ id: 'c1', content: { action: 'cancel' } }])
})

test('an answer to a question never says yes to a call, and a yes to a call answers no question', async () => {
  const paint = asking({ message: 'Sure?', answer: z.object({ approved: z.boolean() }) })
  const send = counted('send', { needsApproval: true })
  const { agent } = testAgent([call(['c1', 'paint', {}], ['c2', 'send', {}]), say('ok')], {
    tools: [paint.tool, send.tool],
  })
  const answers = answerQueue()
  const events: AGUIEvent[] = []
  const run = agent.run(input([user('go')]), { answers, context: { subject: 'ada' } })
  let token: string | undefined
  for await (const event of run) {
    events.push(event)
    const [asked] = requests(events)
    const [question] = questions(events)
    if (asked === undefined || question === undefined || token !== undefined) continue
    token = asked.approval.token
    const metadata = { countersign: { token } }
    await answers.put({ ...answered(question, { approved: true }), metadata })
    // the page of another maker cannot turn the one into the other either
    setTimeout(
      () =>
        void answers.put({
          interruptId: asked.approval.id,
          status: 'resolved',
          payload: { approved: false },
          metadata,
        }),
      50,
    )
  }
  expect(paint.replies).toEqual([{ action: 'accept', content: { approved: true } }])
  expect(send.runs).toEqual([])
  expect(results(events).find(({ id }) => id === 'c2')).toMatchObject({ own: { outcome: 'denied' } })
})

test('a tool knows the thread and the run that it belongs to', async () => {
  const paint = asking()
  const run = live(paint)
  await run.answers.put(answered(await run.asked(), { colour: 'red' }))
  await run.done
  expect(paint.contexts).toMatchObject([{ threadId: 'thread', runId: expect.stringMatching(/^run_/) }])
})
