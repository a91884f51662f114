import { execFile, spawn } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { fileLedger } from '@countersign/server/node'
import { describeSharedLedger, type LedgerWorker } from '@countersign/testing/suites'
import { afterAll, expect, test } from 'vitest'
import { bundleForNode } from '../../../scripts/bundle.mjs'

const worker = join(import.meta.dirname, 'file-ledger.process.ts')
const script = await bundleForNode(worker, join(import.meta.dirname, '..'))
const folder = await mkdtemp(join(tmpdir(), 'countersign-ledger-'))
afterAll(async () => {
  await script.remove()
  await rm(folder, { recursive: true })
})
let files = 0
const newFile = () => join(folder, `${++files}.sqlite`)
const linesOf = async (file: string) =>
  (await readFile(file, 'utf8')).split('\n').filter((line) => line !== '')

describeSharedLedger(
  'fileLedger of several processes',
  async () => {
    const path = newFile()
    const log = `${path}.log`
    await writeFile(log, '')
    const ledger = await fileLedger(path)
    const start = (ids: readonly string[]): LedgerWorker => {
      const child = spawn(process.execPath, [script.file, path, log, ...ids], { stdio: 'inherit' })
      const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
      return { ended, kill: () => child.kill('SIGKILL') }
    }
    return { ledger, start, ran: () => linesOf(log), close: ledger.close }
  },
  { test: (name, run) => test(name, run), expect },
)

test('processes that make the same file at the same time share one ledger', async () => {
  const path = newFile()
  const openings = Array.from({ length: 6 }, () => promisify(execFile)(process.execPath, [script.file, path]))
  const ids = (await Promise.all(openings)).map(({ stdout }) => stdout.trim())
  expect([new Set(ids).size, ids[0]?.startsWith('file_')]).toEqual([1, true])
})

const hasBuiltIn = process.getBuiltinModule?.('node:sqlite') !== undefined

test.skipIf(hasBuiltIn)('where no SQLite can be had, the error says how to get one', async () => {
  const lonely = await bundleForNode(worker, folder)
  const run = promisify(execFile)(process.execPath, [lonely.file, newFile()])
  await expect(run).rejects.toThrow(/npm install @photostructure\/sqlite/)
})
