import {
  type AGUIEvent,
  type Effect,
  findAnswerable,
  type Interrupt,
  isThreadRecord,
  readRecord,
  resumeEntries,
  type ToolCallPart,
} from '@countersign/core'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import {
  answer,
  ask,
  asked,
  Chat,
  call,
  closed,
  custom,
  opened,
  pending,
  result,
  runFinished,
  runStarted,
  type Step,
  says,
  seed,
  start,
  text,
} from './support.js'

// Several providers name calls by their place in one answer, and begin anew with the next: `functions.send_mail:0`.
const id = 'functions.send_mail:0'
const a = { path: '/a' }
const b = { path: '/b' }
const alone = {}

const brief = ({ input, state, approval }: ToolCallPart) => [input, state, approval?.id, approval?.problem]

/** The question about a call, told by an event. `input`: what it says the call is. */
const question = (approvalId: string, input?: unknown): AGUIEvent => {
  const value = { toolCallId: id, approval: { id: approvalId, options: ['deny', 'once'] } }
  return custom('approval-requested', input === undefined ? value : { ...value, input })
}

const interrupts = (...ids: string[]): AGUIEvent => {
  const of = (one: string): Interrupt => ({ id: one, reason: 'tool_call', toolCallId: id })
  return runFinished({ outcome: { type: 'interrupt', interrupts: ids.map(of) } })
}

describe('F26 a call whose id was used before', () => {
  const rounds: Record<string, Step[]> = {
    'in a later round, under no message': [...call(id, a, alone), result(id), ...call(id, b, alone)],
    'in a later round, with the same arguments': [...call(id, b, alone), result(id), ...call(id, b, alone)],
    'in a later round, under the same message': [...call(id, a), result(id), ...call(id, b)],
    'in a later round, with another tool': [
      start(id, { toolCallName: 'list' }),
      ...call(id, a, alone).slice(1),
      result(id),
      ...call(id, b, alone),
    ],
    'in a later turn, under no message': [
      ...call(id, a, alone),
      result(id),
      says('u2'),
      ...call(id, b, alone),
    ],
    'in a later turn, under the same message': [...call(id, a), result(id), says('u2'), ...call(id, b)],
    'in a later turn, after a call without an outcome': [...call(id, a), says('u2'), ...call(id, b)],
    'that is the id of a message of the person': [says(id), ...call(id, b, alone)],
  }
  for (const [where, steps] of Object.entries(rounds)) {
    test(`${where}, is a call of its own with a question of its own`, () => {
      const chat = new Chat()
      chat.do(says('u1'), opened(), runStarted(), ...steps)
      expect(asked(chat.do(question('q', b)))).toEqual(['q'])
      expect(chat.pending.map(brief)).toEqual([[b, 'approval-requested', 'q', undefined]])
      // It stands in the turn in which it was asked, so that its answer goes out.
      const turn = chat.messages.findLastIndex(({ role }) => role === 'user')
      const at = chat.messages.findIndex(({ parts }) => parts.some((part) => part === chat.pending[0]))
      expect(at).toBeGreaterThan(turn)
      chat.do(runFinished(), closed, answer('q'))
      expect(resumeEntries(chat.state, false).map(({ interruptId }) => interruptId)).toEqual(['q'])
      chat.do(opened('run-2'), runStarted('run-2'), result(id, '"sent"'))
      expect(chat.calls(id).at(-1)).toMatchObject({ input: b, state: 'complete', output: 'sent' })
    })
  }

  test('in a later turn, with the id of the first question too', () => {
    const chat = new Chat()
    chat.do(
      says('u1'),
      ...pending(id),
      answer(`approval_${id}`),
      opened(),
      runStarted(),
      result(id),
      runFinished(),
      closed,
    )
    chat.do(says('u2'), opened(), runStarted(), ...call(id, b, { parentMessageId: 'a2' }))
    expect(asked(chat.do(ask(id, {}, { input: b })))).toEqual([`approval_${id}`])
    expect(chat.pending.map(brief)).toEqual([[b, 'approval-requested', `approval_${id}`, undefined]])
    expect(findAnswerable(chat.state, `approval_${id}`).status).toBe('open')
  })

  test('takes nothing that was still to be said of the first question', () => {
    const chat = new Chat()
    chat.do(
      says('u1'),
      ...pending(id),
      { type: 'close', ids: [`approval_${id}`], because: 'moved-on' },
      says('u2'),
    )
    expect(resumeEntries(chat.state, false)).toMatchObject([{ status: 'cancelled' }])
    chat.do(...call(id, b, { parentMessageId: 'a2' }), ask(id, {}, { input: b }))
    expect(resumeEntries(chat.state, false)).toEqual([])
  })
})

describe('F26 two calls of one id in one message', () => {
  const both = [
    [a, 'approval-requested', 'q1', undefined],
    [b, 'approval-requested', 'q2', undefined],
  ]
  const orders: Record<string, Step[]> = {
    'each asked about when it is complete': [
      ...call(id, a),
      question('q1', a),
      ...call(id, b),
      question('q2', b),
    ],
    'both asked about at the end': [...call(id, a), ...call(id, b), question('q1', a), question('q2', b)],
    'asked about in the other order': [...call(id, a), ...call(id, b), question('q2', b), question('q1', a)],
    'asked about without their arguments, in their order': [
      ...call(id, a),
      ...call(id, b),
      interrupts('q1', 'q2'),
    ],
  }
  for (const [order, steps] of Object.entries(orders)) {
    test(`${order}: each has its arguments, its question and its answer`, () => {
      const chat = new Chat()
      chat.do(says('u1'), opened(), runStarted(), ...steps)
      expect(chat.pending.map(brief)).toEqual(both)
      expect(chat.calls(id).map((one) => one.arguments)).toEqual([a, b].map((one) => JSON.stringify(one)))
      chat.do(runFinished(), closed, answer('q1', false), answer('q2'))
      expect(resumeEntries(chat.state, false).map(({ interruptId }) => interruptId)).toEqual(['q1', 'q2'])
    })
  }

  test('that are alike: the second is there as soon as something is said of it', () => {
    const chat = new Chat()
    chat.do(says('u1'), ...call(id, a), question('q1', a), ...call(id, a), question('q2', a))
    expect(chat.pending.map(brief)).toEqual([
      [a, 'approval-requested', 'q1', undefined],
      [a, 'approval-requested', 'q2', undefined],
    ])
  })

  test('and one question that does not say which: it cannot be answered until the other call has an outcome', () => {
    const chat = new Chat()
    chat.do(says('u1'), ...call(id, a), ...call(id, b), question('q1'))
    expect(findAnswerable(chat.state, 'q1')).toEqual({ status: 'closed', reason: 'approval-changed' })
    chat.do(result(id))
    expect(chat.pending.map(brief)).toEqual([[a, 'approval-requested', 'q1', undefined]])
  })

  test('do not make a question answerable again that changed otherwise', () => {
    const chat = new Chat()
    chat.do(
      says('u1'),
      ...call(id, a),
      question('q1', a),
      ...call(id, b),
      question('q1', b),
      question('q2', b),
    )
    expect(findAnswerable(chat.state, 'q1')).toEqual({ status: 'closed', reason: 'approval-changed' })
  })

  test('are both stored with their outputs, and both loaded again', () => {
    const chat = new Chat()
    const output = (n: number): Step => ({
      type: 'tool-output',
      toolCallId: id,
      messageId: `o${n}`,
      output: n,
    })
    chat.do(says('u1'), opened(), runStarted(), ...call(id, a), ...call(id, b), runFinished(), closed)
    chat.do(output(1), output(2))
    expect(chat.calls(id).map(({ input, output }) => [input, output])).toEqual([
      [a, 1],
      [b, 2],
    ])
    const record = JSON.parse(JSON.stringify(readRecord(chat.state)))
    if (!isThreadRecord(record)) throw new Error('This is no record.')
    const loaded = new Chat()
    loaded.do({ type: 'restore', record })
    expect(loaded.state.unsent.size).toBe(2)
  })
})

// Whatever a server does with two ids: no question is ever lost.

type Told = { readonly input: unknown }

type Act =
  | {
      readonly do: 'call'
      readonly id: string
      readonly input: unknown
      readonly parent: string | undefined
      readonly name: string
    }
  | { readonly do: 'ask'; readonly id: string; readonly says: boolean; readonly repeats: boolean }
  | { readonly do: 'result'; readonly id: string }
  | { readonly do: 'answer'; readonly which: number; readonly approved: boolean }
  | { readonly do: 'run' | 'break' | 'speak' }

const ids = fc.constantFrom('x:0', 'x:1')
const act: fc.Arbitrary<Act> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('call' as const),
      id: ids,
      input: fc.constantFrom(a, b, {}),
      parent: fc.constantFrom(undefined, 'm1', 'm2'),
      name: fc.constantFrom('remove', 'remove', 'remove', 'format'),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('ask' as const),
      id: ids,
      says: fc.boolean(),
      repeats: fc.boolean(),
    }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('result' as const), id: ids }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('answer' as const), which: fc.nat(5), approved: fc.boolean() }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constantFrom('run' as const, 'break' as const, 'speak' as const) }),
  },
)

test(`F26 whatever is done with repeated ids, every question is pending, answered or closed (seed ${seed})`, () => {
  let questions = 0
  const statuses = new Map<string, number>()
  fc.assert(
    fc.property(fc.array(act, { minLength: 4, maxLength: 24 }), (acts) => {
      const chat = new Chat()
      chat.do(says('u0'), opened(), runStarted())
      const told = new Map<string, Told>()
      const latest = new Map<string, unknown>()
      acts.forEach((one, n) => {
        take(chat, one, n, told, latest)
        const shown = chat.messages.flatMap(({ parts }) => parts)
        for (const [approvalId, { input }] of told) {
          const found = findAnswerable(chat.state, approvalId)
          expect(found.status).not.toBe('not-found')
          const holders = shown.filter(
            (part) => part.type === 'tool-call' && part.approval?.id === approvalId,
          )
          // The answer to it was followed by a second request for the same call.
          if (holders.length === 0) expect(found.status).toBe('already-answered')
          // What can be answered is what was asked about.
          if (found.status !== 'open') continue
          expect(chat.pending).toContainEqual(expect.objectContaining({ approval: found.approval }))
          if (input !== undefined) expect(found.call.input).toEqual(input)
        }
      })
      questions += told.size
      for (const approvalId of told.keys()) {
        const { status } = findAnswerable(chat.state, approvalId)
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
      }
    }),
    { seed, numRuns: 2000 },
  )
  console.log(`seed ${seed}: ${questions} questions, at the end`, Object.fromEntries(statuses))
  for (const status of ['open', 'already-answered', 'closed'])
    expect(statuses.get(status)).toBeGreaterThan(50)
})

function take(chat: Chat, one: Act, n: number, told: Map<string, Told>, latest: Map<string, unknown>): void {
  switch (one.do) {
    case 'call': {
      const parent = one.parent === undefined ? {} : { parentMessageId: one.parent }
      chat.do(...call(one.id, one.input, { toolCallName: one.name, ...parent }))
      latest.set(one.id, one.input)
      return
    }
    case 'ask': {
      if (!latest.has(one.id)) return
      // Some servers take the call's id for the question's.
      const approvalId = one.repeats ? `question of ${one.id}` : `q${n}`
      const input = one.says ? latest.get(one.id) : undefined
      const approval = { id: approvalId, options: ['deny', 'once'] }
      const value = { toolCallId: one.id, approval, ...(one.says && { input }) }
      const effects: readonly Effect[] = chat.do(custom('approval-requested', value))
      // A question about a call that has its answer or its outcome is none.
      const isTaken = asked(effects).includes(approvalId)
      if (isTaken || chat.state.approvals.has(approvalId)) told.set(approvalId, { input })
      else
        expect(chat.calls(one.id).every((other) => other.approval || other.state !== 'input-complete')).toBe(
          true,
        )
      return
    }
    case 'result':
      chat.do(result(one.id, '"done"', { messageId: `result-${n}` }))
      return
    case 'answer': {
      const open = chat.pending[one.which % Math.max(chat.pending.length, 1)]
      if (open?.approval) chat.do(answer(open.approval.id, one.approved))
      return
    }
    case 'run':
    case 'break': {
      const error = { type: 'RUN_ERROR', message: 'It broke.' } as const
      chat.do(one.do === 'run' ? runFinished() : error, closed)
      chat.do(opened(`run-${n}`), runStarted(`run-${n}`), ...text(`t${n}`, 'So'))
      return
    }
    case 'speak': {
      const visible = chat.pending.flatMap(({ approval }) => approval?.id ?? [])
      chat.do(runFinished(), closed, { type: 'close', ids: visible, because: 'moved-on' })
      chat.do(says(`u${n}`), opened(`run-${n}`), runStarted(`run-${n}`))
      return
    }
    default:
      one satisfies never
  }
}
