import {
  type AnswerChannel,
  type Ledger,
  memoryAnswerChannel,
  memoryLedger,
  memoryRunLog,
  memoryThreads,
  type RunLog,
  type ThreadStore,
} from '@countersign/server'
import {
  describeAnswerChannel,
  describeLedger,
  describeRunLog,
  describeThreads,
  type SuiteRunner,
} from '@countersign/testing/suites'
import { expect, test } from 'vitest'

// Stores that a suite must refuse.

/** The tests of a suite that fail. */
async function failures(suite: (runner: SuiteRunner) => void): Promise<string[]> {
  const specs: (readonly [string, () => Promise<void>])[] = []
  suite({ test: (name, run) => void specs.push([name, run]), expect })
  const failed: string[] = []
  for (const [name, run] of specs) await run().catch(() => failed.push(name))
  return failed
}

/** What stores make of a text: keys of 255 characters, collations, trailing spaces, C strings, UTF-8. */
test.each<readonly [string, (text: string) => string]>([
  ['cuts it', (text) => text.slice(0, 255)],
  ['ignores case', (text) => text.toLowerCase()],
  ['normalizes it', (text) => text.normalize('NFC')],
  ['trims it', (text) => text.trim()],
  ['leaves out NUL', (text) => text.replaceAll('\0', '')],
  ['replaces unpaired surrogates', (text) => Buffer.from(text).toString()],
])('the suites of stores refuse one that takes two users for the same, because it %s', async (_, fold) => {
  const ledger = (inner: Ledger): Ledger => ({
    ...inner,
    lookup: (ref) => inner.lookup({ ...ref, owner: ref.owner === null ? null : fold(ref.owner) }),
    issue: (record) => inner.issue({ ...record, owner: record.owner === null ? null : fold(record.owner) }),
  })
  const log = (inner: RunLog): RunLog => ({
    begin: (key) => inner.begin(fold(key)),
    read: (key, ...rest) => inner.read(fold(key), ...rest),
  })
  const channel = (inner: AnswerChannel): AnswerChannel => ({
    open: (key, receive) => inner.open(fold(key), receive),
    deliver: (key, ...rest) => inner.deliver(fold(key), ...rest),
  })
  const apart = /keep to their own/
  expect(
    await Promise.all([
      failures((runner) => describeLedger('a', (given) => ({ ledger: ledger(memoryLedger(given)) }), runner)),
      failures((runner) => describeRunLog('a', () => ({ log: log(memoryRunLog()) }), runner)),
      failures((runner) =>
        describeAnswerChannel('a', () => ({ channel: channel(memoryAnswerChannel()) }), runner),
      ),
    ]),
  ).toEqual(Array(3).fill(expect.arrayContaining([expect.stringMatching(apart)])))
})

test('the suite of thread stores refuses one that keeps no room for results', async () => {
  const roomless = (inner: ThreadStore): ThreadStore => ({
    ...inner,
    append: (key, change) => inner.append(key, { ...change, spare: 0, spareBytes: 0 }),
  })
  expect(
    await failures((runner) =>
      describeThreads('a', (options) => ({ store: roomless(memoryThreads(options)) }), runner),
    ),
  ).toEqual([
    expect.stringContaining('its messages and the spare ones'),
    expect.stringContaining('its bytes and the spare ones'),
  ])
})
