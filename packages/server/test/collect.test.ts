import type { ToolCall } from '@countersign/core'
import { collectToolApprovals, createDenialResults } from '@countersign/server/plan'
import {
  type PromptMessage,
  promptToAGUI,
  type ToolMessagePart,
  toolApprovalRequest,
  toolApprovalResponse,
  toolMessage,
  toolResult,
} from '@countersign/server/prompt'
import { expect, test } from 'vitest'

const asking = (id: string, ...calls: readonly (readonly [id: string, name: string])[]): PromptMessage => ({
  id,
  role: 'assistant',
  content: calls.flatMap(([callId, name]) => [
    { type: 'tool-call' as const, id: callId, name, arguments: '{}' },
    toolApprovalRequest({ approvalId: `approval_${id}_${callId}`, toolCallId: callId }),
  ]),
})
const yes = (approvalId: string) => toolApprovalResponse({ approvalId, approved: true })
const no = (approvalId: string, reason?: string) =>
  toolApprovalResponse({ approvalId, approved: false, reason })
const done = (id: string, name = 'GetWeather') =>
  toolResult({ id, name }, { kind: 'ok', value: { temp: 72 } })
const collect = (prompt: readonly PromptMessage[], excludeResolved = true) =>
  collectToolApprovals(promptToAGUI(prompt), { excludeResolved })
const user = (id: string): PromptMessage => ({ id, role: 'user', content: [{ type: 'text', text: id }] })

const answered = (...parts: readonly ToolMessagePart[]): readonly PromptMessage[] => [
  user('u'),
  asking('a', ['call_1', 'GetWeather'], ['call_2', 'GetTime']),
  toolMessage(parts),
]

test('S1.25 one approved answer, with its call', () => {
  const { approved, denied } = collect(answered(yes('approval_a_call_1')))
  expect(approved).toMatchObject([
    { toolCallId: 'call_1', approved: true, call: { function: { name: 'GetWeather' } } },
  ])
  expect(denied).toEqual([])
})

test('S1.26 one denied answer keeps its reason', () => {
  const { approved, denied } = collect(answered(no('approval_a_call_1', 'No.')))
  expect(approved).toEqual([])
  expect(denied).toMatchObject([{ toolCallId: 'call_1', approved: false, reason: 'No.' }])
})

test('S1.27 S0.52 answers are sorted to their sides; a history without any gives none', () => {
  const { approved, denied } = collect(answered(no('approval_a_call_2'), yes('approval_a_call_1')))
  const names = (list: typeof approved) => list.map(({ call }) => call?.function.name)
  expect([names(approved), names(denied)]).toEqual([['GetWeather'], ['GetTime']])
  expect(collect([])).toEqual({ approved: [], denied: [] })
  expect(collect([user('u'), asking('a', ['call_1', 'GetWeather'])])).toEqual({ approved: [], denied: [] })
})

test('S1.28 S1.10 an answer whose call has its result is left out only on request', () => {
  const prompt = answered(yes('approval_a_call_1'), done('call_1'))
  expect(collect(prompt).approved).toEqual([])
  expect(collect(prompt, false).approved.length).toBe(1)
  expect(collectToolApprovals(promptToAGUI(prompt)).approved.length).toBe(1)
})

test('S1.29 S0.43 D11 an answer for no request counts nowhere', () => {
  expect(collect(answered(yes('approval_unknown'), no('call_1')))).toEqual({ approved: [], denied: [] })
  expect(collect([toolMessage([yes('approval_a_call_1')])])).toEqual({ approved: [], denied: [] })
})

test('S1.9 an entry has the approval, the call, the answer, its reason and the call itself', () => {
  const prompt = answered(
    toolApprovalResponse({
      approvalId: 'approval_a_call_1',
      approved: true,
      reason: 'fine',
      scope: 'session',
    }),
  )
  expect(collect(prompt).approved).toEqual([
    {
      approvalId: 'approval_a_call_1',
      toolCallId: 'call_1',
      approved: true,
      reason: 'fine',
      scope: 'session',
      call: expect.objectContaining({ id: 'call_1', function: { name: 'GetWeather', arguments: '{}' } }),
    },
  ])
})

test('S0.42 S0.53 requests of all assistant messages are found, wherever their answers are', () => {
  const prompt = [
    user('u'),
    asking('a', ['call_1', 'GetWeather']),
    toolMessage([yes('approval_a_call_1')]),
    asking('b', ['call_2', 'GetTime']),
    toolMessage([no('approval_b_call_2')]),
    user('v'),
    { id: 'z', role: 'assistant' as const, content: [{ type: 'text' as const, text: 'Done.' }] },
  ]
  const { approved, denied } = collect(prompt)
  expect([...approved, ...denied].map(({ approvalId }) => approvalId)).toEqual([
    'approval_a_call_1',
    'approval_b_call_2',
  ])
})

test('S0.41 S0.44 an answer belongs to its approval, not to a position nor to the id of a call', () => {
  const late = [
    asking('a', ['call_1', 'GetWeather']),
    asking('b', ['call_2', 'GetTime']),
    toolMessage([yes('approval_b_call_2'), done('call_2', 'GetTime')]),
    asking('c', ['approval_a_call_1', 'GetTime']),
    toolMessage([no('approval_a_call_1', 'Not now.')]),
  ]
  const { approved, denied } = collect(late)
  expect(approved).toEqual([])
  expect(denied).toMatchObject([{ toolCallId: 'call_1', reason: 'Not now.' }])
})

test('S1.55 D9 of two answers to one approval the first counts', () => {
  const both = collect(answered(yes('approval_a_call_1'), yes('approval_a_call_1')))
  expect([both.approved.length, both.denied.length]).toEqual([1, 0])
  const mixed = collect(answered(yes('approval_a_call_1'), no('approval_a_call_1')))
  expect([mixed.approved.length, mixed.denied.length]).toEqual([1, 0])
})

test('S1.56 D24 two requests for one call id in two turns are two calls', () => {
  const prompt = [
    asking('a', ['call_0', 'GetWeather']),
    toolMessage([yes('approval_a_call_0'), done('call_0')]),
    user('again'),
    asking('b', ['call_0', 'GetWeather']),
    toolMessage([yes('approval_b_call_0')]),
  ]
  expect(collect(prompt).approved.map(({ approvalId }) => approvalId)).toEqual(['approval_b_call_0'])
  expect(collect(prompt, false).approved.length).toBe(2)
})

test('what a client shows as cancelled, or wrote down malformed, is no answer; the provider has its own', () => {
  const call = (id: string, countersign: Record<string, unknown>): ToolCall => ({
    id,
    type: 'function',
    function: { name: 'remove', arguments: '{}' },
    metadata: { countersign },
  })
  const toolCalls = [
    call('c1', { approval: { id: 'a1', approved: true }, state: 'cancelled' }),
    call('c2', { approval: { id: 'a2', approved: 'true' } }),
    call('c3', { approval: { approved: true } }),
    call('c4', { approval: { id: 'a4', approved: true }, providerExecuted: true }),
  ]
  expect(collectToolApprovals([{ id: 'a', role: 'assistant', toolCalls }])).toEqual({
    approved: [],
    denied: [],
  })
})

test('S1.30 a denial result: the call, its name, the flag, the payload with the reason', () => {
  const { denied } = collect(answered(no('approval_a_call_1', 'No.')))
  expect(createDenialResults(denied)).toMatchObject([
    {
      type: 'tool-result',
      toolCallId: 'call_1',
      name: 'GetWeather',
      isFailure: true,
      result: { type: 'execution-denied', reason: 'No.' },
    },
  ])
})

test('S1.31 without a reason the payload has none, also as JSON', () => {
  const [result] = createDenialResults(collect(answered(no('approval_a_call_1'))).denied)
  expect(result?.result).toEqual({ type: 'execution-denied', reason: undefined })
  expect(JSON.parse(JSON.stringify(result?.result))).toStrictEqual({ type: 'execution-denied' })
})

test('S1.32 a denial whose call is not known has no result', () => {
  expect(createDenialResults([{ approvalId: 'a', toolCallId: 'c', approved: false }])).toEqual([])
})
