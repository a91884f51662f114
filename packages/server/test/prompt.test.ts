import { isCountersignError, toAGUIMessages, type UIMessage } from '@countersign/core'
import {
  fromPromptMessages,
  isApprovalRequest,
  isApprovalResponse,
  type PromptMessage,
  parseApprovalRequest,
  parseApprovalResponse,
  parsePromptMessage,
  parsePromptMessages,
  parseResponsePart,
  parseStreamPart,
  parseToolMessage,
  promptFromAGUI,
  promptToAGUI,
  toolApprovalRequest,
  toolApprovalResponse,
  toolMessage,
  toolResult,
  toPromptMessages,
} from '@countersign/server/prompt'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { conversation, overTheWire } from '../../core/test/conversation.js'
import { seed } from '../../core/test/support.js'

const call = { type: 'tool-call', id: 'c1', name: 'remove', arguments: '{"path":"/a"}' } as const
const request = toolApprovalRequest({ approvalId: 'approval_1', toolCallId: 'c1' })

test('S0.19 constructors fill the defaults and leave out what was not given', () => {
  expect(request).toStrictEqual({
    type: 'tool-approval-request',
    approvalId: 'approval_1',
    toolCallId: 'c1',
  })
  expect(toolApprovalResponse({ approvalId: 'approval_1', approved: true, reason: undefined })).toStrictEqual(
    {
      type: 'tool-approval-response',
      approvalId: 'approval_1',
      approved: true,
      scope: 'once',
    },
  )
  expect(toolApprovalResponse({ approvalId: 'approval_1', approved: false, scope: 'session' })).toStrictEqual(
    {
      type: 'tool-approval-response',
      approvalId: 'approval_1',
      approved: false,
    },
  )
})

test('S0.20 what is written and read again is the same part, with members and metadata nobody here knows', () => {
  const metadata = { openai: { item: 'x' }, countersign: { token: 'cs1.t' }, deep: { list: [1, null] } }
  const asked = toolApprovalRequest({ approvalId: 'approval_1', toolCallId: 'c1', metadata })
  const said = toolApprovalResponse({
    approvalId: 'approval_1',
    approved: true,
    reason: 'fine',
    scope: 'session',
    providerExecuted: true,
    options: metadata,
  })
  expect(parseApprovalRequest(overTheWire(asked))).toStrictEqual(asked)
  expect(parseApprovalResponse(overTheWire(said))).toStrictEqual(said)
  const more = { ...said, invented: 1 }
  expect(parseApprovalResponse(more)).toBe(more)
})

test('S0.21 what is no request and no response is refused, and the error names the member', () => {
  const path = (run: () => unknown) => {
    try {
      run()
    } catch (error) {
      if (isCountersignError(error) && error.code === 'invalid-argument') return error.data.path
    }
    return 'accepted'
  }
  const { approvalId: _, ...unnamed } = request
  expect(path(() => parseApprovalRequest(unnamed))).toBe('part.approvalId')
  expect(path(() => parseApprovalRequest({ ...request, approvalId: '' }))).toBe('part.approvalId')
  expect(path(() => parseApprovalRequest({ ...request, toolCallId: 7 }))).toBe('part.toolCallId')
  expect(path(() => parseApprovalRequest(null))).toBe('part')
  const response = { type: 'tool-approval-response', approvalId: 'a', approved: true }
  expect(path(() => parseApprovalResponse(response))).toBe('accepted')
  expect(path(() => parseApprovalResponse({ ...response, approvalId: undefined }))).toBe('part.approvalId')
  for (const approved of ['true', 1, null, undefined])
    expect(path(() => parseApprovalResponse({ ...response, approved }))).toBe('part.approved')
  expect(path(() => parseApprovalResponse({ ...response, reason: 1 }))).toBe('part.reason')
  expect(path(() => parseApprovalResponse({ ...response, scope: 'always' }))).toBe('part.scope')
  expect(path(() => parseApprovalResponse(request))).toBe('part.type')
  expect(path(() => parseApprovalResponse(Object.create(response)))).toBe('part.approvalId')
})

test('S0.25 responses, streams and messages with the new parts pass, and old ones as they were', () => {
  expect(parseResponsePart(request)).toBe(request)
  expect(parseStreamPart(request)).toBe(request)
  expect(() => parseStreamPart({ type: 'text', text: 'x' })).toThrow('part.type')
  const old: PromptMessage[] = [
    { id: 'u', role: 'user', content: [{ type: 'text', text: 'hi' }] },
    { id: 's', role: 'system', content: [{ type: 'text', text: 'be kind' }] },
    { id: 'a', role: 'assistant', content: [{ type: 'reasoning', id: 'r', text: 'hm' }, call] },
    toolMessage([toolResult(call, { kind: 'ok', value: 1 })]),
  ]
  expect(parsePromptMessages(old)).toBe(old)
  const asking: PromptMessage = { id: 'a', role: 'assistant', content: [call, request] }
  expect(parsePromptMessage(asking)).toBe(asking)
  expect(() => parsePromptMessage({ ...asking, role: 'user' })).toThrow('message.content[0].type')
  expect(() => parsePromptMessage({ ...asking, role: '__proto__' })).toThrow('message.role')
  expect(() => parsePromptMessages([asking, { role: 'tool', content: [request] }])).toThrow(
    'messages[1].content[0].type',
  )
  expect(() => parsePromptMessages({})).toThrow('messages must be an array')
})

test('S0.26 several responses and results in one tool message pass and keep their order', () => {
  const parts = [
    toolApprovalResponse({ approvalId: 'x', approved: true }),
    toolResult(call, { kind: 'denied', reason: 'No.' }),
    toolApprovalResponse({ approvalId: 'y', approved: false, reason: 'No.' }),
    toolApprovalResponse({ approvalId: 'z', approved: true }),
  ]
  expect(parseToolMessage(overTheWire(toolMessage(parts))).content).toStrictEqual(parts)
})

test('S0.27 the guards tell the parts apart', () => {
  const response = toolApprovalResponse({ approvalId: 'x', approved: true })
  const parts = [call, request, response, toolResult(call, { kind: 'ok', value: null })]
  expect(parts.filter(isApprovalRequest)).toEqual([request])
  expect(parts.filter(isApprovalResponse)).toEqual([response])
})

test('D1 a result keeps the payload and the flag; a tool that returns a payload of its own has succeeded', () => {
  expect(toolResult(call, { kind: 'denied', reason: 'No.' })).toMatchObject({
    isFailure: true,
    result: { type: 'execution-denied', reason: 'No.' },
    metadata: { countersign: { outcome: 'denied' } },
  })
  expect(toolResult(call, { kind: 'ok', value: { type: 'execution-denied' } })).toMatchObject({
    isFailure: false,
    result: { type: 'execution-denied' },
  })
})

const asked: UIMessage = {
  id: 'a',
  role: 'assistant',
  parts: [
    { type: 'text', text: 'I will.' },
    {
      type: 'tool-call',
      id: 'c1',
      name: 'remove',
      arguments: '{"path":"/a"}',
      input: { path: '/a' },
      state: 'approval-requested',
      approval: {
        id: 'approval_1',
        needsApproval: true,
        options: ['deny', 'once', 'session'],
        token: 'cs1.t',
      },
    },
  ],
}

test('U.1 a call with an approval is call and request; once answered, a response follows in a tool message', () => {
  const terms = { countersign: { options: ['deny', 'once', 'session'], token: 'cs1.t' } }
  const question: PromptMessage = {
    id: 'a',
    role: 'assistant',
    content: [{ type: 'text', text: 'I will.' }, call, { ...request, metadata: terms }],
  }
  expect(toPromptMessages([asked])).toStrictEqual([question])
  const [text, part] = asked.parts
  if (text?.type !== 'text' || part?.type !== 'tool-call' || part.approval === undefined)
    throw new Error('parts')
  const approval = { ...part.approval, approved: true, reason: 'fine', scope: 'session' as const }
  const answered = { ...asked, parts: [text, { ...part, state: 'approval-responded' as const, approval }] }
  const response = { approvalId: 'approval_1', approved: true, reason: 'fine', scope: 'session' } as const
  const prompt = [question, toolMessage([toolApprovalResponse(response)])]
  expect(toPromptMessages([answered])).toStrictEqual(prompt)
  expect(fromPromptMessages(prompt)).toEqual([answered])
  // the server reads it as an answer in the history
  expect(promptToAGUI(prompt)).toMatchObject([
    {
      toolCalls: [
        {
          id: 'c1',
          metadata: {
            countersign: { token: 'cs1.t', approval: { id: 'approval_1', approved: true, scope: 'session' } },
          },
        },
      ],
    },
  ])
})

test('U.2 UI to prompt to UI is lossless for everything a peer can have in its view', () => {
  const property = fc.property(conversation, (messages) => {
    const prompt = parsePromptMessages(overTheWire(toPromptMessages(messages)))
    expect(fromPromptMessages(prompt)).toEqual(messages)
    expect(promptFromAGUI(toAGUIMessages(messages))).toEqual(prompt)
    expect(overTheWire(promptToAGUI(prompt))).toEqual(overTheWire(toAGUIMessages(messages)))
  })
  fc.assert(property, { seed, numRuns: 200 })
})

/** How far a call of the property test has come. */
const progress = fc.constantFrom(
  'called',
  'asked',
  'approved',
  'denied',
  'done',
  'failed',
  'refused',
  'closed',
  'provider',
)
const turn = fc.record({
  progress: fc.array(progress, { maxLength: 5 }),
  text: fc.option(fc.string({ minLength: 1, maxLength: 3 })),
  extra: fc.option(fc.dictionary(fc.constantFrom('openai', 'mcp'), fc.nat(), { minKeys: 1 }), {
    nil: undefined,
  }),
})

/** A turn as prompt messages, in the form the conversion gives. */
function promptOf(
  { progress, text, extra }: typeof turn extends fc.Arbitrary<infer T> ? T : never,
  n: number,
) {
  const calls = progress.map((how, index) => ({
    how,
    part: {
      type: 'tool-call' as const,
      id: `c${index % 2 === 0 ? index : `${n}-${index}`}`,
      name: index === 0 ? '__proto__' : 'remove',
      arguments: '{}',
      ...(how === 'provider' && { providerExecuted: true }),
    },
    approvalId: `approval_${n}_${index}`,
  }))
  const isAsked = (how: string) => !['called', 'done', 'failed', 'closed'].includes(how)
  const content = calls.flatMap(({ how, part, approvalId }) =>
    isAsked(how)
      ? [part, toolApprovalRequest({ approvalId, toolCallId: part.id, ...(extra && { metadata: extra }) })]
      : [part],
  )
  const responses = calls.flatMap(({ how, approvalId }) => {
    if (!isAsked(how) || how === 'asked') return []
    const approved = how !== 'denied' && how !== 'refused'
    const providerExecuted = how === 'provider'
    return [
      toolApprovalResponse({ approvalId, approved, providerExecuted, ...(extra && { options: extra }) }),
    ]
  })
  const outcomes = new Map([
    ['done', { kind: 'ok', value: { n } }],
    ['failed', { kind: 'execution_error', reason: 'broken', code: 'x' }],
    ['refused', { kind: 'denied', reason: 'No.' }],
    ['closed', { kind: 'cancelled' }],
  ])
  const results = calls.flatMap(({ how, part }) => {
    const outcome = outcomes.get(how)
    return outcome === undefined ? [] : [{ ...toolResult(part, outcome), messageId: `r_${n}_${part.id}` }]
  })
  const answers = [...responses, ...results]
  const spoken = text === null ? content : [{ type: 'text' as const, text }, ...content]
  const messages: PromptMessage[] = [{ id: `a${n}`, role: 'assistant', content: spoken }]
  return answers.length === 0 ? messages : [...messages, toolMessage(answers)]
}

test('U.2 prompt to UI to prompt is stable, with 0 to 5 calls in every state and ids that repeat', () => {
  const property = fc.property(fc.array(turn, { maxLength: 4 }), (turns) => {
    const prompt = turns.flatMap(promptOf)
    const warned: string[] = []
    const view = fromPromptMessages(prompt, { onWarning: (message) => warned.push(message) })
    expect(warned).toEqual([])
    expect(toPromptMessages(view)).toEqual(prompt)
    expect(promptFromAGUI(overTheWire(promptToAGUI(prompt)))).toEqual(prompt)
  })
  fc.assert(property, { seed, numRuns: 200 })
})

test('D11 S0.43 orphans are left out with a warning, and an answer is matched by its approval alone', () => {
  const warned: string[] = []
  const prompt: PromptMessage[] = [
    { id: 'a', role: 'assistant', content: [call, request] },
    { id: 'b', role: 'assistant', content: [{ ...request, approvalId: 'approval_2', toolCallId: 'gone' }] },
    toolMessage([
      toolApprovalResponse({ approvalId: 'c1', approved: true }),
      toolApprovalResponse({ approvalId: 'approval_9', approved: true }),
      toolResult({ id: 'c9', name: 'x' }, { kind: 'ok', value: 1 }),
    ]),
  ]
  const [first] = fromPromptMessages(prompt, { onWarning: (message) => warned.push(message) })
  expect(first?.parts).toMatchObject([{ state: 'approval-requested' }])
  expect(warned.length).toBe(4)
})

test('D9 the first of two responses to one request counts', () => {
  const say = (approved: boolean) => toolApprovalResponse({ approvalId: 'approval_1', approved })
  const [message] = fromPromptMessages([
    { id: 'a', role: 'assistant', content: [call, request] },
    toolMessage([say(false), say(true)]),
  ])
  expect(message?.parts).toMatchObject([{ approval: { approved: false } }])
})

test('a failure that only says so is a failure to everybody', () => {
  const prompt: PromptMessage[] = [
    { id: 'a', role: 'assistant', content: [call] },
    toolMessage([
      {
        type: 'tool-result',
        toolCallId: 'c1',
        name: 'remove',
        isFailure: true,
        result: { type: 'execution-denied', reason: 'No.' },
      },
    ]),
  ]
  expect(fromPromptMessages(prompt)).toMatchObject([{ parts: [{ state: 'denied' }, {}] }])
  expect(promptToAGUI(prompt)[1]).toMatchObject({
    metadata: { countersign: { outcome: 'denied' } },
    error: 'No.',
  })
})
