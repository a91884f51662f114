// The runner lists the tests of every store, without running them: a store with fewer tests than another, or without a suite, fails here.
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { countSuites, suiteTable, unequal } from './suites.mjs'

const root = join(import.meta.dirname, '../..')

test('T3 T23 T24 the suites of threads, ledgers and run logs have the same number of tests on every store', () => {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-suites-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const file = join(folder, 'tests.json')
  const vitest = join(root, 'node_modules/vitest/vitest.mjs')
  const folders = ['server', 'sql', 'redis'].map((name) => `packages/${name}/test`)
  const { status, stderr } = spawnSync(process.execPath, [vitest, 'list', `--json=${file}`, ...folders], {
    cwd: root,
    encoding: 'utf8',
    env: { ...process.env, TEST_FULL: '1' },
  })
  expect(status, stderr).toBe(0)
  const listed: { readonly name: string }[] = JSON.parse(readFileSync(file, 'utf8'))
  const counts = countSuites(listed.map(({ name }) => name))
  console.info(suiteTable(counts))
  expect(unequal(counts)).toEqual([])
})
