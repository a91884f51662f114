// What is left of a conversation that was removed, which Persistence says to whoever has to delete a user's data.
import { ChatClient } from '@countersign/client'
import { serverThreads } from '@countersign/client/server-threads'
import { createAgent, handleChat, scriptedModel, threadResponse, tool } from '@countersign/server'
import { ensureSchema, fromSqlite, sqlLedger, sqlRunLog, sqlThreads } from '@countersign/sql'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { readPage } from './markdown.js'

const { DatabaseSync } = await import(['node', 'sqlite'].join(':')).catch(
  () => import('@photostructure/sqlite'),
)

/** Where it is said, and what the page calls it. */
const said = {
  subject: 'user-of-this-test',
  message: 'words-of-the-user',
  arguments: 'path-of-the-call',
  result: 'result-of-the-call',
  reason: 'reason-of-the-answer',
  reply: 'words-of-the-model',
}

test('Persistence names the copies that are left when a conversation is removed', async () => {
  const database = new DatabaseSync(':memory:')
  const connection = fromSqlite(database)
  await ensureSchema(connection)
  const readFile = tool({
    name: 'read_file',
    description: 'Reads a file.',
    input: z.object({ path: z.string() }),
    needsApproval: true,
    execute: () => said.result,
  })
  const call = { id: 'c1', name: 'read_file', arguments: JSON.stringify({ path: said.arguments }) }
  const model = scriptedModel([
    [
      { type: 'tool-call', ...call },
      { type: 'finish', reason: 'tool_calls' },
    ],
    [
      { type: 'text-delta', delta: said.reply },
      { type: 'finish', reason: 'stop' },
    ],
  ])
  const agent = createAgent({
    model,
    tools: [readFile],
    threads: sqlThreads(connection),
    runLog: sqlRunLog(connection),
    approvals: { secret: 'a secret of this test: at least 32 bytes', ledger: sqlLedger(connection) },
  })
  const context = { subject: said.subject }
  const fetch = async (url: RequestInfo | URL, init?: RequestInit) => {
    const request = new Request(url, init)
    return request.method === 'POST'
      ? handleChat(agent, request, { context })
      : threadResponse(agent, request, { context })
  }
  const threadId = 'removed'
  const client = new ChatClient({ ...serverThreads('http://localhost/', { fetch }), threadId })
  await client.sendMessage(said.message)
  const id = client.getSnapshot().pendingApprovals[0]?.approval.id ?? ''
  expect(await client.addToolApprovalResponse({ id, approved: true, reason: said.reason })).toEqual({
    status: 'sent',
  })
  await client.dispose()

  await agent.threads?.remove({ owner: said.subject, threadId })
  await agent.grants.revoke(said.subject, { threadId })

  /** What of the conversation stands in a table. */
  const left = (table: string) => {
    const rows = JSON.stringify(database.prepare(`select * from ${table}`).all())
    return Object.entries(said).flatMap(([what, word]) => (rows.includes(word) ? what : []))
  }
  expect(left('countersign_threads')).toEqual([])
  expect(left('countersign_log')).toEqual([])
  expect(left('countersign_rows')).toEqual(['subject', 'arguments', 'result', 'reason'])
  expect(left('countersign_events')).toEqual(['subject', 'arguments', 'result', 'reply'])
  const page = readPage('docs/persistence.md').replace(/\s+/g, ' ')
  expect(page).toMatch(
    /copies that have the user's name[^|]*The ledger has the arguments and the result [^.]* and the reason/,
  )
  expect(page).toMatch(/The run log has everything that a run sent/)
})
