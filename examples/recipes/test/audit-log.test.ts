import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { scriptedModel } from '@countersign/server'
import { expect, onTestFinished, test } from 'vitest'
import { converse } from '../src/approval-loop.js'
import { auditedAgent } from '../src/audit-log.js'
import { calls, says } from '../src/script.js'
import { deleteFile } from '../src/tools.js'

test('S2.68 the audit log has a JSON line for each proposal, decision, execution and outcome, without arguments and tokens', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'countersign-audit-'))
  onTestFinished(() => rm(folder, { recursive: true }))
  const log = join(folder, 'audit.jsonl')
  const files = new Map([
    ['draft.md', 'one'],
    ['report.md', 'the report'],
  ])
  const model = scriptedModel([
    calls(['c1', 'delete_file', { path: 'draft.md' }], ['c2', 'delete_file', { path: 'report.md' }]),
    says('Done.'),
  ])
  const agent = auditedAgent(log, { model, tools: [deleteFile(files)], warn: () => {} })
  await converse(agent, 'Tidy up.', ({ arguments: args }) => ({ approved: args.includes('draft') }))
  const text = await readFile(log, 'utf8')
  const lines = text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  const of = (id: string) =>
    lines
      .filter(({ toolCallId }) => toolCallId === id)
      .map(({ event, decision, outcome }) => [event, decision ?? outcome ?? ''].join(' ').trim())
  expect(of('c1')).toEqual(['issued', 'claimed approve', 'started', 'completed result'])
  expect(of('c2')).toEqual(['issued', 'claimed deny', 'completed denied'])
  expect(text).not.toMatch(/draft|report|cs1\./)
})
