import { ChatClient, nextStep, stream } from '@countersign/client'
import { createAgent, memoryLedger, scriptedModel, tool } from '@countersign/server'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { call, say } from '../../packages/server/test/support.js'

/** A chat in one process whose server confirms answers while `who.confirmed`, and in which `who.subject` is signed in. */
async function ask() {
  const who = { confirmed: true, subject: 'alice' }
  const runs: unknown[] = []
  const remove = tool({
    name: 'remove',
    description: 'Removes a file.',
    input: z.object({ path: z.string() }),
    needsApproval: true,
    message: ({ path }) => `Remove ${path}?`,
    redact: () => ({ path: '[hidden]' }),
    execute: ({ path }) => {
      runs.push(path)
      return 'gone'
    },
  })
  const agent = createAgent({
    tools: [remove],
    model: scriptedModel([call(['c1', 'remove', { path: 'a.txt' }]), say('Removed.')]),
    approvals: {
      secret: 'only for this test, 32 bytes long!',
      ledger: memoryLedger(),
      confirm: async () => who.confirmed,
    },
    warn: () => {},
  })
  const connection = stream((input, { signal }) =>
    agent.run(input, { signal, context: { subject: who.subject } }),
  )
  const client = new ChatClient({ connection })
  await client.sendMessage('go')
  const id = client.getSnapshot().pendingApprovals[0]?.approval?.id ?? expect.fail('nothing was asked')
  /** The conversation as it is kept, on a new page. */
  const reload = () => {
    const { messages } = client.getSnapshot()
    return new ChatClient({
      connection,
      threadId: client.threadId,
      initialMessages: structuredClone(messages),
    })
  }
  return { client, who, runs, id, reload }
}

test('where `confirm` says no the request stays open, and an answer that is confirmed runs the call once', async () => {
  const { client, who, runs, id } = await ask()
  who.confirmed = false
  const refused = await client.addToolApprovalResponse({ id, approved: true })
  expect(refused).toMatchObject({ status: 'refused', code: 'approval-not-yours' })
  const { status, pendingApprovals } = client.getSnapshot()
  expect([status, pendingApprovals.length, runs]).toEqual(['awaiting-approval', 1, []])
  expect(pendingApprovals[0]?.error).toMatchObject({ code: 'approval-not-yours' })
  const steps = [refused, ...pendingApprovals].map((one) => nextStep(one)?.next)
  expect(steps, 'the page can ask for what `confirm` wants').toEqual(['confirm', 'confirm'])
  who.confirmed = true
  expect(await client.addToolApprovalResponse({ id, approved: true })).toEqual({ status: 'sent' })
  expect(runs).toEqual(['a.txt'])
  expect(client.getSnapshot().messages.at(-1)?.parts.at(-1)).toMatchObject({ text: 'Removed.' })
})

test('an answer of somebody else leaves the request open on the page and after a reload, and the right user can still answer', async () => {
  const { client, who, runs, id, reload } = await ask()
  const shown = client.getSnapshot().pendingApprovals[0]?.approval
  who.subject = 'bob'
  const refused = await client.addToolApprovalResponse({ id, approved: true })
  expect(refused).toMatchObject({ status: 'refused', code: 'approval-not-yours' })
  expect(nextStep(refused)?.next).toBe('sign-in')
  for (const page of [client, reload()]) {
    const { status, pendingApprovals } = page.getSnapshot()
    expect([status, pendingApprovals.length, runs]).toEqual(['awaiting-approval', 1, []])
    expect(pendingApprovals[0]?.approval).toEqual(shown)
  }
  who.subject = 'alice'
  const page = reload()
  expect(await page.addToolApprovalResponse({ id, approved: true })).toEqual({ status: 'sent' })
  expect(runs).toEqual(['a.txt'])
  expect(page.getSnapshot().messages.at(-1)?.parts.at(-1)).toMatchObject({ text: 'Removed.' })
})
