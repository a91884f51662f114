import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '..')
const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))

/** Programs of ours; what `bootstrap.mjs` starts is one of them, and the tools of others have a help of their own. */
const programs = Object.entries<string>(scripts).flatMap(([name, command]) => {
  const [program, file = '', ...args] = command.split(' ')
  return program === 'node' && !file.endsWith('bootstrap.mjs') ? [{ name, file, args }] : []
})

/** What a program prints before it ends; one that goes on to work is ended. */
async function printed(file: string, args: readonly string[]) {
  return new Promise<{ status: unknown; out: string; error: string }>((resolve) => {
    const child = [join(root, file), ...args]
    execFile(process.execPath, child, { cwd: root, timeout: 60_000 }, (failure, out, error) =>
      resolve({ status: failure?.code ?? 0, out, error }),
    )
  })
}

test('there are programs of ours behind npm run', () => {
  expect(programs.length).toBeGreaterThan(15)
})

test('npm run docs -- --help says in one line what it takes, and does nothing', async () => {
  const { status, out, error } = await printed('scripts/docs.mjs', ['--help'])
  expect([status, out, error]).toEqual([0, 'Usage: npm run docs -- [serve]\n', ''])
})

test.concurrent.each(programs)(
  'npm run $name answers an option that it does not have with one line',
  async ({ file, args }) => {
    const { status, out, error } = await printed(file, [...args, '--no-such-option'])
    expect([status, out]).toEqual([1, ''])
    expect(error.trimEnd()).toMatch(/^[^\n]*no-such-option[^\n]*npm run [^\n]*$/)
  },
)

// where a whole run of the benchmark has left its results, it would work for seconds and write the page
const hasResults = existsSync(join(root, '.countersign/bench.json'))

test.concurrent.each([
  ...(hasResults ? [] : [['test/bench/run.mjs', '--only', 'w7', '--no-build', '--page']]),
  ['test/compare/compare.mjs', '--only', 'ai-sdk/forgd'],
  ['test/attacks/attacks.mjs', 'no such attack'],
  ['test/chaos/chaos.mjs', '--ledger', 'mongo'],
  ['test/chaos/chaos.mjs', '--calls', 'many'],
  ['test/explore/explore.mjs', '--only', 'no such model'],
  ['test/explore-server/explore.mjs', '--only', 'no such model'],
  ['test/explore/mutations.mjs', 'no such mutation'],
  ['test/conformance/conformance.mjs', 'no/such/folder'],
  ['test/providers/replay.mjs', 'no/such/folder'],
  ['test/bench/run.mjs', '--only', 'w999'],
  ['test/apps/run.mjs', 'nxt'],
])('%s answers a value that it does not know with one line: %s %s', async (file, ...args) => {
  const { status, out, error } = await printed(file, args)
  expect([status, out]).toEqual([1, ''])
  expect(error.trimEnd().split('\n')).toEqual([expect.stringContaining(args.at(-1) ?? '')])
})
