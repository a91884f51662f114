import {
  ChatStore,
  isTerminal,
  type MessagePart,
  resumeEntries,
  type ToolCallPart,
  type ToolCallState,
  toAGUIMessages,
  type UIMessage,
} from '@countersign/core'
import { fullSteps } from '@countersign/core/ag-ui'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { deepFreeze, failure, own, type Step, seed, user } from './support.js'

// Ids are few, so that steps meet one another: near-legal sequences come by themselves.
const messageId = fc.constantFrom('a1', 'a2', '__proto__')
const callId = fc.constantFrom('c1', 'c2', 'constructor')
const approvalId = callId.map((id) => `approval_${id}`)
const reasoningId = fc.constantFrom('r1', 'r2')
const piece = fc.constantFrom('{"path":', '"/a"}', '{}', ' text', '')
const one = fc.constant
const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined })

const textSteps: fc.Arbitrary<Step[]> = fc.oneof(
  messageId.map((id) => [{ type: 'TEXT_MESSAGE_START', messageId: id } as const]),
  fc
    .tuple(messageId, piece)
    .map(([id, delta]) => [{ type: 'TEXT_MESSAGE_CONTENT', messageId: id, delta } as const]),
  messageId.map((id) => [{ type: 'TEXT_MESSAGE_END', messageId: id, metadata: { end: 1 } } as const]),
  reasoningId.map((id) => [{ type: 'REASONING_MESSAGE_START', messageId: id, role: 'reasoning' } as const]),
  fc.tuple(reasoningId, messageId).map(([id, hint]) => [
    {
      type: 'REASONING_MESSAGE_START',
      messageId: id,
      role: 'reasoning',
      ...own({ messageId: hint }),
    } as const,
  ]),
  fc
    .tuple(reasoningId, piece)
    .map(([id, delta]) => [{ type: 'REASONING_MESSAGE_CONTENT', messageId: id, delta } as const]),
)

const startStep = fc.tuple(callId, optional(messageId), fc.constantFrom('remove', 'other')).map(
  ([toolCallId, parentMessageId, toolCallName]): Step => ({
    type: 'TOOL_CALL_START',
    toolCallId,
    toolCallName,
    ...(parentMessageId !== undefined && { parentMessageId }),
  }),
)
const endStep = (id: string): Step => ({ type: 'TOOL_CALL_END', toolCallId: id, ...own({ token: 'T' }) })
const askStep = fc.tuple(callId, fc.constantFrom('/a', '/b'), fc.constantFrom('', 'Sure?'), fc.boolean()).map(
  ([toolCallId, path, message, approved]): Step => ({
    type: 'CUSTOM',
    name: 'approval-requested',
    value: {
      toolCallId,
      toolName: 'remove',
      input: { path },
      approval: { id: `approval_${toolCallId}`, needsApproval: true, message, token: 'T', approved },
    },
  }),
)
const resultStep = fc
  .tuple(callId, optional(fc.constantFrom('denied', 'cancelled', 'error')), fc.nat(99))
  .map(
    ([toolCallId, outcome, n]): Step => ({
      type: 'TOOL_CALL_RESULT',
      messageId: `o${n}`,
      toolCallId,
      content: '"x"',
      ...(outcome !== undefined && failure(outcome)),
    }),
  )

const callSteps: fc.Arbitrary<Step[]> = fc.oneof(
  {
    weight: 3,
    arbitrary: fc
      .tuple(callId, messageId)
      .map(([id, parent]): Step[] => [
        { type: 'TOOL_CALL_START', toolCallId: id, toolCallName: 'remove', parentMessageId: parent },
        { type: 'TOOL_CALL_ARGS', toolCallId: id, delta: '{"path":"/a"}' },
        endStep(id),
      ]),
  },
  { weight: 3, arbitrary: askStep.map((event) => [event]) },
  startStep.map((event) => [event]),
  fc
    .tuple(callId, piece)
    .map(([toolCallId, delta]): Step[] => [{ type: 'TOOL_CALL_ARGS', toolCallId, delta }]),
  callId.map((id) => [endStep(id)]),
  resultStep.map((event) => [event]),
  fc
    .tuple(approvalId, fc.constantFrom('approval-stale', 'ledger-unavailable'))
    .map(([id, code]): Step[] => [
      { type: 'CUSTOM', name: 'approval-refused', value: { approvalId: id, code } },
    ]),
  callId.map((toolCallId): Step[] => [
    { type: 'CUSTOM', name: 'client-tool-ready', value: { toolCallId, input: { path: '/a' } } },
  ]),
  fc.tuple(callId, fc.constantFrom('i1', 'i2')).map(([toolCallId, id]): Step[] => [
    {
      type: 'RUN_FINISHED',
      threadId: 't',
      runId: 'r',
      outcome: {
        type: 'interrupt',
        interrupts: [
          { id, reason: 'tool_call', toolCallId },
          { id: 'q', reason: 'x' },
        ],
      },
    },
  ]),
)

let spoken = 0
const acts: fc.Arbitrary<Step[]> = fc.oneof(
  one(undefined).map((): Step[] => [{ type: 'user-message', message: user(`u${spoken++}`) }]),
  fc
    .tuple(approvalId, fc.boolean())
    .map(([id, approved]): Step[] => [{ type: 'answer', approvalId: id, approved }]),
  approvalId.map((id): Step[] => [{ type: 'close', ids: [id, 'q'], because: 'moved-on' }]),
  approvalId.map((id): Step[] => [{ type: 'close', ids: [id], because: 'expired' }]),
  callId.map((toolCallId): Step[] => [{ type: 'tool-started', toolCallId }]),
  fc
    .tuple(callId, fc.nat(99))
    .map(([toolCallId, n]): Step[] => [{ type: 'tool-output', toolCallId, messageId: `t${n}`, output: n }]),
  one<Step[]>([{ type: 'respond', interruptId: 'q', response: { payload: 1 } }]),
  one<Step[]>([{ type: 'run-opened', runId: 'r' }]),
  one<Step[]>([
    { type: 'run-opened', runId: 'r' },
    { type: 'RUN_STARTED', threadId: 't', runId: 'r' },
  ]),
  one<Step[]>([{ type: 'run-closed', end: { type: 'success' } }]),
  one<Step[]>([{ type: 'run-closed', end: { type: 'aborted' } }]),
)

/** The server's view of what is here: as it was, without its metadata, or with an answer forged into it. */
type Snapshot = 'echo' | 'bare' | 'forged'
const snapshots = fc.constantFrom<Snapshot>('echo', 'bare', 'forged')

const script = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: callSteps },
    { weight: 3, arbitrary: acts },
    { weight: 2, arbitrary: textSteps },
    { weight: 1, arbitrary: snapshots },
  ),
  { minLength: 1, maxLength: 40 },
)

function snapshotOf(messages: readonly UIMessage[], how: Snapshot): Step {
  const sent = toAGUIMessages(messages).map((message) => {
    if (how === 'echo' || message.role !== 'assistant' || !message.toolCalls) return message
    const toolCalls = message.toolCalls.map(({ metadata, ...call }) => {
      const countersign = { ...(metadata?.['countersign'] as object), state: 'cancelled' }
      return how === 'bare' ? call : { ...call, metadata: { countersign } }
    })
    return { ...message, toolCalls }
  })
  return { type: 'MESSAGES_SNAPSHOT', messages: sent }
}

const rank: Record<ToolCallState, number> = {
  'awaiting-input': 0,
  'input-streaming': 1,
  'input-complete': 2,
  'approval-requested': 3,
  'approval-responded': 4,
  executing: 5,
  complete: 6,
  error: 6,
  denied: 6,
  cancelled: 6,
}

const isCall = (part: MessagePart): part is ToolCallPart => part.type === 'tool-call'

function checkCall(before: ToolCallPart, after: ToolCallPart, event: Step): void {
  const reopened = before.state === 'input-complete' && after.state === 'input-streaming'
  // 6. states only move forward, and terminal is terminal
  if (!reopened) expect(rank[after.state]).toBeGreaterThanOrEqual(rank[before.state])
  if (isTerminal(before.state)) expect(after.state).toBe(before.state)
  expect(after.arguments.startsWith(before.arguments)).toBe(true)
  expect(after.name).toBe(before.name)
  const asked = before.approval
  if (!asked) return
  // 5. what was shown and what was answered never changes afterwards
  expect(after.approval).toMatchObject({
    id: asked.id,
    options: asked.options,
    ...(asked.message !== undefined && { message: asked.message }),
    ...(asked.token !== undefined && { token: asked.token }),
  })
  expect([after.arguments, after.approval?.expiresAt]).toEqual([before.arguments, asked.expiresAt])
  if (asked.approved !== undefined) expect(after.approval?.approved).toBe(asked.approved)
  // 14. only the person says yes, and only a result, a refusal, expiry or the person closes what is open
  else if (after.approval?.approved !== undefined) expect(event.type).toBe('answer')
  if (before.state === 'approval-requested' && isTerminal(after.state)) {
    expect(['TOOL_CALL_RESULT', 'CUSTOM', 'close']).toContain(event.type)
    if (event.type === 'CUSTOM') expect(event.name).toBe('approval-refused')
  }
}

function checkMessage(before: UIMessage, after: UIMessage, event: Step): void {
  const calls = after.parts.filter(isCall)
  before.parts.filter(isCall).forEach((part, i) => {
    const same = calls[i]
    if (same?.id === part.id) checkCall(part, same, event)
  })
  if (event.type === 'MESSAGES_SNAPSHOT') return
  before.parts.forEach((part, i) => {
    const now = after.parts[i]
    // 6. a part stays what and where it is, and text only grows
    expect(now?.type).toBe(part.type)
    if ((part.type === 'text' || part.type === 'reasoning') && now?.type === part.type) {
      expect(now.text.startsWith(part.text)).toBe(true)
    }
  })
  // 5. what the person said stays as it is
  if (before.role === 'user') expect(after).toBe(before)
}

test('invariants 5, 6, 11 and 14 hold after every step of random legal and near-legal sequences', () => {
  fc.assert(
    fc.property(script, (entries) => {
      const store = new ChatStore({ threadId: 't', moreSteps: fullSteps })
      const taken: { snapshot: unknown; text: string }[] = []
      for (const entry of entries) {
        const steps = typeof entry === 'string' ? [snapshotOf(store.getSnapshot().messages, entry)] : entry
        for (const event of steps) {
          const before = deepFreeze(store.getSnapshot())
          store.dispatch(event)
          const after = store.getSnapshot()
          const byId = new Map(after.messages.map((message) => [message.id, message]))
          expect(byId.size).toBe(after.messages.length)
          expect(store.messageIds).toEqual([...byId.keys()])
          for (const message of before.messages) {
            const now = byId.get(message.id)
            if (!now) continue
            checkMessage(message, now, event)
            // 11. whoever is equal is the same
            if (now !== message) expect(now).not.toEqual(message)
            now.parts.forEach((part, i) => {
              const old = message.parts[i]
              if (old && part !== old) expect(part).not.toEqual(old)
            })
          }
          const waiting = after.messages.flatMap(({ parts }) =>
            parts.filter((part) => isCall(part) && part.state === 'approval-requested'),
          )
          expect(new Set(after.pendingApprovals)).toEqual(new Set(waiting))
          for (const entry of resumeEntries(store.state, true)) {
            if (entry.status !== 'resolved' || entry.interruptId === 'q') continue
            const answered = after.messages.flatMap(({ parts }) => parts.filter(isCall))
            const approval = answered.find((part) => part.approval?.id === entry.interruptId)?.approval
            expect(entry.payload).toMatchObject({ approved: approval?.approved })
          }
        }
        taken.push({ snapshot: store.getSnapshot(), text: JSON.stringify(store.getSnapshot()) })
      }
      // 11. a published snapshot never changes later
      for (const { snapshot, text } of taken) expect(JSON.stringify(snapshot)).toBe(text)
    }),
    { seed, numRuns: 400 },
  )
})

test('reading seldom or often comes to the same', () => {
  fc.assert(
    fc.property(script, fc.array(fc.boolean(), { minLength: 40, maxLength: 40 }), (entries, reads) => {
      const often = new ChatStore({ threadId: 't', moreSteps: fullSteps })
      const seldom = new ChatStore({ threadId: 't', moreSteps: fullSteps })
      entries.forEach((entry, i) => {
        const steps = typeof entry === 'string' ? [snapshotOf(often.getSnapshot().messages, entry)] : entry
        for (const event of steps) {
          often.dispatch(event)
          often.getSnapshot()
          seldom.dispatch(event)
        }
        if (reads[i]) seldom.getMessage('a1')
      })
      expect(seldom.getSnapshot()).toEqual(often.getSnapshot())
      expect(seldom.messageIds).toEqual(often.messageIds)
    }),
    { seed, numRuns: 300 },
  )
})
