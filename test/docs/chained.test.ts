import { ChatClient } from '@countersign/client'
import {
  createTimeline,
  gated,
  hold,
  resolve,
  scriptedConnection,
  type Timeline,
  text,
  until,
  watch,
} from '@countersign/testing'
import { expect, test } from 'vitest'
import { blocksOf } from './markdown.js'

/** What the page shows of a timeline: acts, requests, ends of streams, and the two flags whenever they change. */
function abridged({ entries }: Timeline): string {
  const whole = createTimeline()
  let flags = 'pending=false skipped=false'
  for (const entry of entries) {
    if (entry.kind === 'event' || entry.kind === 'note') continue
    if (entry.kind !== 'state') {
      whole.add(entry)
      continue
    }
    const now = entry.text.split(' | ').at(-1) ?? ''
    if (now !== flags) whole.add({ kind: 'state', text: now })
    flags = now
  }
  return `${whole.print()}\n`
}

test('the timeline of chained approvals is the one that the page shows', async () => {
  const server = scriptedConnection([
    gated(1),
    [resolve(), gated(2), hold('stream 2')],
    [resolve(), text('All done.')],
  ])
  const client = new ChatClient({ connection: server })
  watch(client, server.timeline)
  const person = client.actions
  await person.sendMessage('Tidy up, then tell the team.')
  void person.addToolApprovalResponse({ id: 'a1', approved: true })
  await until(client, ({ pendingApprovals }) => pendingApprovals[0]?.approval?.id === 'a2')
  const second = person.addToolApprovalResponse({ id: 'a2', approved: true })
  server.release('stream 2')
  await second
  const [shown] = blocksOf('docs/chained-approvals.md').filter(({ language }) => language === 'timeline')
  expect(abridged(server.timeline)).toBe(shown?.code)
})
