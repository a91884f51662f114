import { tool } from '@countersign/server'
import { expect, test } from 'vitest'
import { z } from 'zod'
import {
  call,
  calls,
  connect,
  lastText,
  mailTool,
  pendingId,
  says,
  scriptedModel,
  states,
  wires,
} from './engine.js'

for (const wire of wires) {
  test(`E.1 a user approves one email and the answer arrives (${wire})`, async () => {
    const { mail, sent } = mailTool()
    const model = scriptedModel([
      calls(call('c1', 'send_email', { to: 'team@example.org' })),
      says('It is sent.'),
    ])
    const { chat } = await connect(wire, { model, tools: [mail] })
    await chat.sendMessage('Mail the team.')
    expect(chat.getSnapshot().status).toBe('awaiting-approval')
    expect(chat.getSnapshot().pendingApprovals[0]?.input).toEqual({ to: 'team@example.org' })
    expect(sent).toEqual([])
    expect(await chat.addToolApprovalResponse({ id: pendingId(chat), approved: true })).toEqual({
      status: 'sent',
    })
    expect(sent).toEqual(['team@example.org'])
    expect(states(chat)).toEqual(['send_email:complete'])
    expect(lastText(chat)).toBe('It is sent.')
    expect(chat.getSnapshot().status).toBe('ready')
    expect(model.requests).toHaveLength(2)
  })

  test(`E.2 a user denies with a reason and the model explains (${wire})`, async () => {
    const { mail, sent } = mailTool()
    const model = scriptedModel([
      calls(call('c1', 'send_email', { to: 'team@example.org' })),
      ({ messages }) => {
        const last = messages.at(-1)
        const [result] = last?.role === 'tool' ? last.content : []
        const outcome = result?.type === 'tool-result' ? result.outcome : undefined
        return says(`Not sent: ${outcome && 'reason' in outcome ? outcome.reason : 'no reason'}`)
      },
    ])
    const { chat } = await connect(wire, { model, tools: [mail] })
    await chat.sendMessage('Mail the team.')
    const answer = { id: pendingId(chat), approved: false, reason: 'too early' }
    expect(await chat.addToolApprovalResponse(answer)).toEqual({ status: 'sent' })
    expect(sent).toEqual([])
    expect(states(chat)).toEqual(['send_email:denied'])
    expect(lastText(chat)).toBe('Not sent: too early')
  })

  test(`E.3 the user ignores the request and types something else: it is cancelled and the conversation goes on (${wire})`, async () => {
    const { mail, sent } = mailTool()
    const model = scriptedModel([calls(call('c1', 'send_email', { to: 'team@example.org' })), says('Noon.')])
    const { chat } = await connect(wire, { model, tools: [mail] })
    await chat.sendMessage('Mail the team.')
    expect(await chat.sendMessage('What time is it?')).toEqual({ status: 'sent' })
    expect(sent).toEqual([])
    expect(states(chat)).toEqual(['send_email:cancelled'])
    expect(lastText(chat)).toBe('Noon.')
  })

  test(`E.4 of three calls the safe one runs at once and the answers to the others make one continuation (${wire})`, async () => {
    const { mail, sent } = mailTool()
    const clock = tool({
      name: 'clock',
      description: 'Tells the time.',
      input: z.object({}),
      execute: () => 'noon',
    })
    const model = scriptedModel([
      calls(
        call('c1', 'clock', {}),
        call('c2', 'send_email', { to: 'a@example.org' }),
        call('c3', 'send_email', { to: 'b@example.org' }),
      ),
      says('One of two.'),
    ])
    const { chat } = await connect(wire, { model, tools: [clock, mail] })
    await chat.sendMessage('Mail both.')
    expect(states(chat)).toEqual([
      'clock:complete',
      'send_email:approval-requested',
      'send_email:approval-requested',
    ])
    const [first, second] = [pendingId(chat, 0), pendingId(chat, 1)]
    expect(await chat.addToolApprovalResponse({ id: first, approved: true })).toEqual({ status: 'waiting' })
    expect(await chat.addToolApprovalResponse({ id: second, approved: false })).toEqual({ status: 'sent' })
    expect(sent).toEqual(['a@example.org'])
    expect(states(chat)).toEqual(['clock:complete', 'send_email:complete', 'send_email:denied'])
    expect(model.requests).toHaveLength(2)
  })

  test(`an approved call runs with the arguments as edited, where the tool allows it (${wire})`, async () => {
    const { mail, sent } = mailTool()
    const model = scriptedModel([calls(call('c1', 'send_email', { to: 'tema@example.org' })), says('Sent.')])
    const { chat } = await connect(wire, { model, tools: [mail] })
    await chat.sendMessage('Mail the team.')
    const input = { to: 'team@example.org' }
    expect(await chat.addToolApprovalResponse({ id: pendingId(chat), approved: true, input })).toEqual({
      status: 'sent',
    })
    expect(sent).toEqual(['team@example.org'])
  })

  test(`S4.73 a chained approval makes a request for each answer (${wire})`, async () => {
    const { mail, sent } = mailTool()
    const model = scriptedModel([
      calls(call('c1', 'send_email', { to: 'a@example.org' })),
      calls(call('c2', 'send_email', { to: 'b@example.org' })),
      says('Both are sent.'),
    ])
    const { chat } = await connect(
      wire,
      { model, tools: [mail] },
      {
        onApprovalRequest: ({ approvalId }) =>
          void chat.addToolApprovalResponse({ id: approvalId, approved: true }),
      },
    )
    await chat.sendMessage('Mail both.')
    while (chat.getSnapshot().isLoading) await new Promise((resolve) => setTimeout(resolve, 5))
    expect(sent).toEqual(['a@example.org', 'b@example.org'])
    expect(lastText(chat)).toBe('Both are sent.')
  })
}
