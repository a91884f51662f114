import { ChatClient } from '@countersign/client'
import { event, gated, scriptedConnection, text } from '@countersign/testing'
import { expect, onTestFinished, test } from 'vitest'
import { callOf } from './open-chat.js'

// What a stranger found in the thirteenth session: a page that was told its answer had been sent, where another had been first.

const ran = { content: 'ran' }
const denied = { content: 'no', outcome: 'denied' }
const expired = { content: 'late', outcome: 'cancelled', code: 'approval-expired' }

test.each([
  [
    'a no, where a yes was first',
    false,
    'approve',
    ran,
    'complete',
    { status: 'refused', code: 'approval-conflict' },
  ],
  [
    'a yes, where a no was first',
    true,
    'deny',
    denied,
    'denied',
    { status: 'refused', code: 'approval-conflict' },
  ],
  ['a yes that came too late', true, 'expire', expired, 'cancelled', { status: 'expired' }],
  ['a no that came too late', false, 'expire', expired, 'cancelled', { status: 'expired' }],
  ['a yes that was the one', true, 'approve', ran, 'complete', { status: 'sent' }],
  ['a no that was the one', false, 'deny', denied, 'denied', { status: 'sent' }],
] as const)(
  '%s: the call shows what the server did, and its giver is told so',
  async (_, approved, decision, { content, ...flags }, state, told) => {
    const metadata = { countersign: { decided: { decision, by: 'person', at: 1 }, ...flags } }
    const result = event({ type: 'TOOL_CALL_RESULT', messageId: 'r1', toolCallId: 'c1', content, metadata })
    const connection = scriptedConnection([gated(1), [result, text('done')]])
    const client = new ChatClient({ connection, notify: 'sync' })
    onTestFinished(() => client.dispose())
    await client.sendMessage('go')
    expect(await client.addToolApprovalResponse({ id: 'a1', approved })).toMatchObject(told)
    const problem =
      told.status === 'sent' ? undefined : told.status === 'expired' ? 'approval-expired' : told.code
    expect(callOf(client, 'c1')).toMatchObject({ state })
    expect(callOf(client, 'c1').approval?.problem).toBe(problem)
  },
)
