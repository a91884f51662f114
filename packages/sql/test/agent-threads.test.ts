import { setTimeout as sleep } from 'node:timers/promises'
import { createAgent, handleChat, loadThread, type Model } from '@countersign/server'
import { sqlLedger, sqlRunLog, sqlThreads } from '@countersign/sql'
import { expect, test } from 'vitest'
import { useDatabases } from './databases.js'

// createAgent({ threads }) on a database that several processes share: here two connections of their own.

const { databases, newTables } = await useDatabases('conversations of an agent in PostgreSQL')
const context = { subject: 'ann' }
const words = Array.from({ length: 40 }, (_, n) => `word${n} `)

for (const database of databases) {
  test.skipIf(!database.isThere)(
    `T19, T20: on ${database.name}, a run posted fifty times is one run with fifty equal readers, and a second run gets 409 with its id`,
    async () => {
      const { one, other, prefix } = await newTables(database)
      let calls = 0
      let goOn = () => {}
      const refused = new Promise<void>((resolve) => {
        goOn = resolve
      })
      const model: Model = {
        id: 'test/model',
        async *stream() {
          calls++
          for (const delta of words) {
            await sleep(20)
            yield { type: 'text-delta', delta }
          }
          await refused
          yield { type: 'finish', reason: 'stop' }
        },
      }
      const secret = 'only for this test, 32 bytes long!'
      const [first, second] = [one, other].map((connection) =>
        createAgent({
          model,
          threads: sqlThreads(connection, { prefix }),
          runLog: sqlRunLog(connection, { prefix }),
          approvals: { secret, ledger: sqlLedger(connection, { prefix }) },
          warn: () => {},
        }),
      )
      if (first === undefined || second === undefined) throw new Error('two connections are needed')
      const post = (agent: typeof first, runId: string, id: string) => {
        const input = {
          threadId: 't',
          runId,
          messages: [{ id, role: 'user', content: 'Hi' }],
          tools: [],
          context: [],
        }
        const body = JSON.stringify({ ...input, protocolVersion: '1.0' })
        const headers = { 'content-type': 'application/json' }
        return handleChat(agent, new Request('http://localhost/', { method: 'POST', headers, body }), {
          context,
        })
      }
      const posted = Array.from({ length: 50 }, (_, n) => post(n % 2 ? first : second, 'r1', 'u1'))
      await Promise.all(posted)
      const busy = await post(second, 'r2', 'u2')
      goOn()
      expect([busy.status, await busy.json()]).toMatchObject([
        409,
        { error: { code: 'thread-busy', runId: 'r1' } },
      ])
      const bodies = await Promise.all(posted.map(async (response) => (await response).text()))
      // Comments differ: who rejoined is told so, and on a busy machine some readers get a heartbeat.
      expect(new Set(bodies.map((body) => body.replaceAll(/^:.*\n\n/gm, ''))).size).toBe(1)
      expect(bodies[0]?.match(/word\d+ /g)).toEqual(words)
      expect(calls).toBe(1)
      const thread = await loadThread(second, { subject: 'ann', threadId: 't' })
      expect(thread).toMatchObject({
        run: undefined,
        messages: [{ id: 'u1' }, { parts: [{ text: words.join('') }] }],
      })
    },
  )
}
