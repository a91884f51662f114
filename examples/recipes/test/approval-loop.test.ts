import { createAgent, scriptedModel } from '@countersign/server'
import { expect, test, vi } from 'vitest'
import { converse } from '../src/approval-loop.js'
import { batch, batchModel } from '../src/batch.js'
import { calls, says } from '../src/script.js'
import { deleteFile, readFile } from '../src/tools.js'

vi.spyOn(console, 'warn').mockImplementation(() => {})

test('S0.66 the loop: parts, requests, answers into the history, again, until nothing is asked', async () => {
  const files = new Map([
    ['/etc/hosts', 'localhost'],
    ['notes.txt', 'buy milk'],
  ])
  const model = scriptedModel([
    calls(['c1', 'read_file', { path: '/etc/hosts' }], ['c2', 'read_file', { path: 'notes.txt' }]),
    calls(['c3', 'delete_file', { path: 'notes.txt' }]),
    says('The hosts are known, the notes are gone.'),
  ])
  const asked: unknown[] = []
  const agent = createAgent({ model, tools: [deleteFile(files), readFile(files)], warn: () => {} })
  const history = await converse(agent, 'Look around.', (call) => {
    asked.push([call.name, JSON.parse(call.arguments)])
    return { approved: true }
  })
  expect(asked).toEqual([
    ['read_file', { path: '/etc/hosts' }],
    ['delete_file', { path: 'notes.txt' }],
  ])
  expect(files.has('notes.txt')).toBe(false)
  expect(model.requests.length).toBe(3)
  const kinds = history.map(({ role, content }) => [role, ...content.map(({ type }) => type)])
  expect(kinds).toEqual([
    ['user', 'text'],
    ['assistant', 'tool-call', 'tool-approval-request', 'tool-call'],
    ['tool', 'tool-result'],
    ['tool', 'tool-approval-response'],
    ['tool', 'tool-result'],
    ['assistant', 'tool-call', 'tool-approval-request'],
    ['tool', 'tool-approval-response'],
    ['tool', 'tool-result'],
    ['assistant', 'text'],
  ])
})

test('S0.67 the batch: yes, no with a reason, yes, in one message; all three have their result before the model goes on', async () => {
  const files = new Map([
    ['draft-1.md', 'one'],
    ['draft-2.md', 'two'],
    ['report.md', 'the report'],
  ])
  const model = batchModel()
  const history = await batch(files, { model })
  expect([...files.keys()]).toEqual(['report.md'])
  expect(history[2]?.content).toMatchObject([
    { type: 'tool-approval-response', approved: true },
    { type: 'tool-approval-response', approved: false, reason: 'Only the drafts.' },
    { type: 'tool-approval-response', approved: true },
  ])
  expect(model.requests.length).toBe(2)
  expect(model.requests[1]?.messages.at(-1)?.content).toMatchObject([
    { toolCallId: 'c1', outcome: { kind: 'ok' } },
    { toolCallId: 'c2', outcome: { kind: 'denied', reason: 'Only the drafts.' } },
    { toolCallId: 'c3', outcome: { kind: 'ok' } },
  ])
})
