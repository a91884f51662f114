import {
  type AnswerResult,
  CountersignError,
  type NextStep,
  nextStep,
  type ToolCallPart,
} from '@countersign/client'
import { type ApprovalErrorCode, isRefusal } from '@countersign/core'
import { expect, test } from 'vitest'

/** Every code, and what it leads to. */
const expected: Readonly<Record<ApprovalErrorCode, Pick<NextStep, 'state' | 'next'>>> = {
  'approval-malformed': { state: 'unused', next: 'ask-again' },
  'approval-edit-invalid': { state: 'unused', next: 'correct' },
  'approval-mandate-refused': { state: 'unused', next: 'correct' },
  'approval-not-found': { state: 'unclear', next: 'check' },
  'approval-not-yours': { state: 'unused', next: 'sign-in' },
  'approval-tampered': { state: 'unused', next: 'ask-again' },
  'approval-expired': { state: 'unused', next: 'ask-again' },
  'approval-stale': { state: 'unused', next: 'ask-again' },
  'approval-changed': { state: 'unused', next: 'ask-again' },
  'approval-conflict': { state: 'unused', next: 'reload' },
  'approval-interrupted': { state: 'unclear', next: 'check' },
  'ledger-unavailable': { state: 'kept', next: 'retry' },
  'call-running': { state: 'kept', next: 'retry' },
  'request-refused': { state: 'unused', next: 'correct' },
}

const codes = Object.keys(expected).filter(isRefusal)

function part(approval: Partial<NonNullable<ToolCallPart['approval']>>, error?: ToolCallPart['error']) {
  const request = { id: 'a1', needsApproval: true as const, options: ['deny', 'once'] as const, ...approval }
  const call: ToolCallPart = {
    type: 'tool-call',
    id: 'c1',
    name: 'remove',
    input: {},
    arguments: '{}',
    state: 'cancelled',
    approval: request,
    ...(error && { error }),
  }
  return call
}

test.each(codes)('%s is told with a state and what helps, by code, by call and by result', (code) => {
  const step = nextStep(code)
  expect(step).toMatchObject(expected[code])
  expect(step.message).toMatch(/^[A-Z].*\.$/)
  expect(step.message).not.toContain('approval-')
  expect(nextStep(part({ problem: code }))).toBe(step)
  expect(nextStep({ status: 'refused', code })).toBe(step)
  expect(nextStep({ status: 'closed', reason: code })).toBe(step)
})

test('no two codes say the same', () => {
  expect(new Set(codes.map((code) => nextStep(code).message)).size).toBe(codes.length)
})

test('an interrupted call is told by its error, and a call that is well not at all', () => {
  const step = nextStep(part({}, { message: 'It may or may not have run.', code: 'interrupted' }))
  expect(step).toBe(nextStep('approval-interrupted'))
  expect(nextStep(part({}, { message: 'The disk is full.' }))).toBeUndefined()
  expect(nextStep(part({}))).toBeUndefined()
})

const failed = (error: CountersignError): AnswerResult => ({ status: 'failed', error })
const http = (status: number) => failed(new CountersignError('http-status', 'refused', { status }))

const results: readonly (readonly [string, AnswerResult, Partial<NextStep> | undefined])[] = [
  ['sent', { status: 'sent' }, undefined],
  ['waiting', { status: 'waiting' }, undefined],
  ['already-answered', { status: 'already-answered' }, { state: 'unused', next: 'none' }],
  ['not-found', { status: 'not-found' }, { state: 'unused', next: 'none' }],
  ['expired', { status: 'expired' }, nextStep('approval-expired')],
  ['closed', { status: 'closed', reason: 'cancelled' }, { state: 'unused', next: 'none' }],
  ['HTTP 401', http(401), { state: 'kept', next: 'sign-in' }],
  ['HTTP 403', http(403), { state: 'kept', next: 'sign-in' }],
  ['HTTP 415', http(415), { state: 'kept', next: 'reload' }],
  ['HTTP 429', http(429), { state: 'kept', next: 'retry' }],
  ['HTTP 503', http(503), { state: 'kept', next: 'retry' }],
  ['no server', failed(new CountersignError('connection-failed', 'gone')), { state: 'kept', next: 'retry' }],
]

test.each(results)('%s leads to its step', (_, result, step) => {
  if (step === undefined) expect(nextStep(result)).toBeUndefined()
  else expect(nextStep(result)).toMatchObject(step)
})
