import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { redisLedger, redisRunLog } from '@countersign/redis'
import { describeSharedLedger, type LedgerWorker } from '@countersign/testing/suites'
import { afterAll, expect } from 'vitest'
import { bundleForNode } from '../../../scripts/bundle.mjs'
import { useRedis } from './server.js'

const { test, url, connect, newPrefix } = await useRedis('several processes on one Redis')

const script = await bundleForNode(
  join(import.meta.dirname, 'worker.process.ts'),
  join(import.meta.dirname, '..'),
)
const folder = await mkdtemp(join(tmpdir(), 'countersign-redis-test-'))
afterAll(async () => {
  await script.remove()
  await rm(folder, { recursive: true })
})
let logs = 0

describeSharedLedger(
  'redisLedger of several processes',
  async () => {
    const prefix = newPrefix()
    const log = join(folder, `${++logs}.log`)
    await writeFile(log, '')
    const start = (ids: readonly string[]): LedgerWorker => {
      const child = spawn(process.execPath, [script.file, 'approvals', url, prefix, log, ...ids], {
        stdio: 'inherit',
      })
      const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
      return { ended, kill: () => child.kill('SIGKILL') }
    }
    const ran = async () => (await readFile(log, 'utf8')).split('\n').filter((line) => line !== '')
    return { ledger: redisLedger(await connect(), { prefix }), start, ran, close: () => {} }
  },
  { test: (name, run) => test(name, run), expect },
)

test('a run whose process was killed ends for its readers, and is then forgotten', async () => {
  const prefix = newPrefix()
  const log = redisRunLog(await connect(), { prefix })
  const child = spawn(process.execPath, [script.file, 'run', url, prefix], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await once(child.stdout, 'data')
  const { signal } = new AbortController()
  const reading = await log.read('run', 0, signal)
  child.kill('SIGKILL')
  const read: string[] = []
  for await (const batch of reading ?? []) read.push(...batch.map(({ data }) => data))
  expect(read).toEqual(['a', 'b'])
  expect(await log.read('run', 0, signal)).toBeUndefined()
  log.close()
})
