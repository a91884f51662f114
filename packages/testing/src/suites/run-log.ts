import type { LoggedEvent, RunLog } from '@countersign/server'
import { within } from '../waiting.js'
import { distinctTexts } from './distinct.js'
import type { SuiteRunner } from './runner.js'

export interface RunLogUnderTest {
  readonly log: RunLog
  /** The same storage as opened by another process, if the log is shared. */
  readonly another?: RunLog | undefined
  close?(): Promise<void> | void
}

/** Creates an empty log. */
export type CreateRunLog = () => Promise<RunLogUnderTest> | RunLogUnderTest

type Reading = AsyncIterable<readonly LoggedEvent[]> | undefined

/**
 * The tests that every {@link RunLog} passes. Call it at the top of a test file with the runner's `test` and `expect`.
 *
 * @example
 * describeRunLog('memoryRunLog', () => ({ log: memoryRunLog() }), { test, expect })
 */
export function describeRunLog(name: string, create: CreateRunLog, { test, expect }: SuiteRunner): void {
  const spec = (sentence: string, run: (bench: Bench) => Promise<void>) =>
    test(`${sentence} (${name})`, async () => {
      const { log, another = log, close } = await create()
      const stop = new AbortController()
      try {
        await run({ log, another, signal: stop.signal, stop: () => stop.abort() })
      } finally {
        stop.abort()
        await close?.()
      }
    })

  spec(
    'a run that has ended is read from its first event on, numbered from 1',
    async ({ log, another, signal }) => {
      await write(log, 'run', ['a', 'b', 'c'])
      expect(await readAll(await another.read('run', 0, signal))).toEqual(['1 a', '2 b', '3 c'])
    },
  )

  spec('a run is read after the event that was taken last', async ({ log, another, signal }) => {
    await write(log, 'run', ['a', 'b', 'c'])
    expect(await readAll(await another.read('run', 2, signal))).toEqual(['3 c'])
  })

  spec(
    'there is nothing to read of a run that is unknown, or that was read to its end',
    async ({ log, signal }) => {
      await write(log, 'run', ['a', 'b'])
      expect(await log.read('another', 0, signal)).toEqual(undefined)
      expect(await log.read('run', 2, signal)).toEqual(undefined)
      expect(await log.read('run', 9, signal)).toEqual(undefined)
    },
  )

  spec(
    'what a run says while it is read comes as it is said, and its end ends the reading',
    async ({ log, another, signal }) => {
      const writer = await log.begin('run')
      await writer.append(['a'])
      const reading = readAll(await another.read('run', 0, signal))
      await writer.append(['b', 'c'])
      await writer.end()
      expect(await reading).toEqual(['1 a', '2 b', '3 c'])
    },
  )

  spec(
    'a run that is open and has said nothing new can be read: its next words are waited for',
    async ({ log, another, signal }) => {
      const writer = await log.begin('run')
      await writer.append(['a'])
      const reading = readAll(await another.read('run', 1, signal))
      await writer.append(['b'])
      await writer.end()
      expect(await reading).toEqual(['2 b'])
    },
  )

  spec(
    'a reader that does not wait gets what is there of an open run, and ends; the run goes on',
    async ({ log, another, signal }) => {
      const read = async (after: number) => readAll(await another.read('run', after, signal, { wait: false }))
      expect(await read(0)).toEqual([])
      const writer = await log.begin('run')
      expect(await read(0)).toEqual([])
      await writer.append(['a', 'b'])
      expect([await read(0), await read(1), await read(2)]).toEqual([['1 a', '2 b'], ['2 b'], []])
      await writer.append(['c'])
      await writer.end()
      expect(await read(0)).toEqual(['1 a', '2 b', '3 c'])
    },
  )

  spec('several readers at different places each get their own rest', async ({ log, another, signal }) => {
    const writer = await log.begin('run')
    await writer.append(['a', 'b'])
    const readings = [
      log.read('run', 0, signal),
      another.read('run', 1, signal),
      another.read('run', 2, signal),
    ]
    const rests = readings.map(async (reading) => readAll(await reading))
    await writer.append(['c'])
    await writer.end()
    expect(await Promise.all(rests)).toEqual([['1 a', '2 b', '3 c'], ['2 b', '3 c'], ['3 c']])
  })

  spec('a reader that is aborted ends, and the others go on', async ({ log, another, signal }) => {
    const own = new AbortController()
    const writer = await log.begin('run')
    const stopped = readAll(await another.read('run', 0, own.signal))
    const going = readAll(await another.read('run', 0, signal))
    own.abort()
    expect(await stopped).toEqual([])
    await writer.append(['a'])
    await writer.end()
    expect(await going).toEqual(['1 a'])
  })

  spec(
    'a run that begins again replaces the older one: its readers end, and its writer writes nothing more',
    async ({ log, another, signal }) => {
      const older = await log.begin('run')
      await older.append(['old'])
      const reading = readAll(await another.read('run', 1, signal))
      const newer = await log.begin('run')
      await older.append(['older still'])
      await older.end()
      expect(await reading).toEqual([])
      await newer.append(['new'])
      await newer.end()
      expect(await readAll(await another.read('run', 0, signal))).toEqual(['1 new'])
    },
  )

  spec('runs keep to their own keys, whatever is in them', async ({ log, another, signal }) => {
    for (const [at, key] of distinctTexts.entries()) await write(log, key, [`of ${at}`])
    for (const [at, key] of distinctTexts.entries())
      expect(await readAll(await another.read(key, 0, signal))).toEqual([`1 of ${at}`])
  })

  spec('events come back as they were written, in order, however many', async ({ log, another, signal }) => {
    const events = Array.from({ length: 500 }, (_, n) =>
      JSON.stringify({ n, text: 'Zo\u00eb Zoe\u0308 \u{1F600} "\\\n'.repeat(n % 7) }),
    )
    const writer = await log.begin('run')
    const reading = readAll(await another.read('run', 0, signal))
    for (let at = 0; at < events.length; at += 7) await writer.append(events.slice(at, at + 7))
    await writer.end()
    expect(await reading).toEqual(events.map((event, index) => `${index + 1} ${event}`))
  })
}

interface Bench {
  readonly log: RunLog
  /** The same log as opened by another process. */
  readonly another: RunLog
  readonly signal: AbortSignal
  stop(): void
}

async function write(log: RunLog, key: string, events: readonly string[]): Promise<void> {
  const writer = await log.begin(key)
  await writer.append(events)
  await writer.end()
}

/** Reads to the end; each event as `n data`. */
function readAll(reading: Reading): Promise<string[]> {
  const read: string[] = []
  const all = async () => {
    for await (const batch of reading ?? []) for (const { n, data } of batch) read.push(`${n} ${data}`)
    return read
  }
  return within(5000, all(), () => `The reading did not end; it has ${read.join(', ')}.`)
}
