import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { afterAll, test as anyTest, expect, vi } from 'vitest'
import { bundleForNode, bundleForPage } from '../../scripts/bundle.mjs'
import { postgresForTests } from '../../scripts/postgres.mjs'
import { launchBrowser } from '../e2e/demo.js'
import { full } from '../full.js'
import { playRounds } from './rounds.js'

const root = resolve(import.meta.dirname, '../..')
const postgres = await postgresForTests('two browsers and two processes over PostgreSQL')
const script = await bundleForNode(join(root, 'test/rounds/server.process.ts'), root)
const folder = await mkdtemp(join(tmpdir(), 'countersign-rounds-'))
afterAll(async () => {
  await postgres?.stop()
  await script.remove()
  await rm(folder, { recursive: true, force: true })
})

const test = anyTest.skipIf(postgres === undefined)
const rounds = Number(process.env.ROUNDS ?? (full ? 100 : 2))
const seed = Number(process.env.SEED ?? 20261125)

test(`T12 T13 T14 T21 a reload, an answer in another browser, and kill -9 of the process that streams: nothing is lost, nothing twice (${rounds} rounds, seed ${seed})`, async () => {
  vi.setConfig({ testTimeout: 1_800_000 })
  const browser = await launchBrowser()
  try {
    const page = await bundleForPage(join(root, 'test/rounds/page.ts'))
    const options = {
      script: script.file,
      page,
      postgres: postgres?.url ?? '',
      folder,
      browser,
      rounds,
      seed,
    }
    const report = await playRounds(options)
    console.log(`seed ${seed}: ${rounds} rounds, ${JSON.stringify(report)}`)
    expect(report.wrong).toEqual([])
    expect(report.kills).toBeGreaterThan(rounds / 2)
  } finally {
    await browser.close()
  }
}, 1_800_000)
