import { ChatClient, type Connection } from '@countersign/client'
import type { AGUIEvent, RunAgentInput } from '@countersign/core'
import { cut, end, gated, hold, resolve, text } from '../events.js'
import { byHand, type RunScript, type Script } from '../script.js'
import { until } from '../waiting.js'
import type { SuiteRunner } from './runner.js'

/** A connection and the script of its server. */
export interface ConnectionUnderTest {
  readonly connection: Connection
  readonly server: Script
  close?(): Promise<void> | void
}

/** Creates a connection to a server that responds to request k with `runs[k - 1]`: `scriptedServer(runs)`, `scriptedSocket(runs)`, ... */
export type CreateConnection = (
  runs: readonly RunScript[],
) => Promise<ConnectionUnderTest> | ConnectionUnderTest

/**
 * The tests that every {@link Connection} passes. Call it at the top of a test file with the runner's `test` and `expect`.
 *
 * @example
 * describeConnection('fetchServerSentEvents', async (runs) => {
 *   const server = await scriptedServer(runs)
 *   return { server, connection: fetchServerSentEvents(server.url), close: () => server.close() }
 * }, { test, expect })
 */
export function describeConnection(name: string, create: CreateConnection, runner: SuiteRunner): void {
  const { expect } = runner
  const spec = (
    sentence: string,
    runs: readonly RunScript[],
    check: (under: ConnectionUnderTest) => Promise<void>,
  ) =>
    runner.test(`${sentence} (${name})`, async () => {
      const under = await create(runs)
      try {
        await check(under)
      } finally {
        await under.close?.()
      }
    })
  reading(spec, expect)
  ending(spec, expect)
  sharing(spec, expect)
  chatting(spec, expect)
}

type Spec = (
  sentence: string,
  runs: readonly RunScript[],
  check: (under: ConnectionUnderTest) => Promise<void>,
) => void
type Expect = SuiteRunner['expect']

function reading(spec: Spec, expect: Expect): void {
  spec(
    'nothing is sent before the first event is asked for',
    [[text('Hello.')]],
    async ({ connection, server }) => {
      const events = open(connection, 'r1')
      expect(server.requests.length).toEqual(0)
      await drain(events)
      expect(server.requests.length).toEqual(1)
    },
  )

  spec('the server gets the request as it was given', [[text('Hello.')]], async ({ connection, server }) => {
    await drain(open(connection, 'r1'))
    expect(server.requests).toEqual([inputOf('r1')])
  })

  const words = Array.from({ length: 300 }, (_, index) => `${index} Größe 日本 🙂 "\\\n`)
  spec(
    'events arrive whole and in order, whatever came together',
    [[text(...words)]],
    async ({ connection }) => {
      expect(deltas(await drain(open(connection, 'r1')))).toEqual(words)
    },
  )

  spec('who reads slowly misses nothing', [[text(...words)]], async ({ connection }) => {
    const events: unknown[] = []
    for await (const batch of open(connection, 'r1')) {
      await new Promise((resolve) => setTimeout(resolve, events.length < 20 ? 5 : 0))
      events.push(...flat(batch))
    }
    expect(deltas(events)).toEqual(words)
  })

  const long = 'x'.repeat(1_000_000)
  spec('an event of a megabyte arrives', [[text(long)]], async ({ connection }) => {
    expect(deltas(await drain(open(connection, 'r1'))).map(({ length }) => length)).toEqual([long.length])
  })
}

function ending(spec: Spec, expect: Expect): void {
  spec(
    'a run that was stopped before it began sends nothing',
    [[text('Hello.')]],
    async ({ connection, server }) => {
      // An error would tell the caller nothing new.
      const events = await drain(open(connection, 'r1', AbortSignal.abort())).catch(() => [])
      expect(events).toEqual([])
      expect(server.requests.length).toEqual(0)
    },
  )

  spec(
    'a stop ends the reading, and the server hears of it',
    [[text('one'), hold()]],
    async ({ connection, server }) => {
      const stop = new AbortController()
      const reading = drain(open(connection, 'r1', stop.signal)).catch(() => [])
      await server.held()
      stop.abort()
      await reading
      expect(await (await server.request(1)).closed).toEqual('aborted')
    },
  )

  spec(
    'who stops reading needs to say nothing else',
    [[text('one'), hold()]],
    async ({ connection, server }) => {
      for await (const _ of open(connection, 'r1')) break
      expect(await (await server.request(1)).closed).toEqual('aborted')
    },
  )

  spec(
    'a broken stream is an error, after what came before it',
    [[text('one'), cut()]],
    async ({ connection }) => {
      const events: unknown[] = []
      const error = await drain(open(connection, 'r1'), events).then(
        () => undefined,
        (cause: unknown) => cause,
      )
      expect(error instanceof Error).toEqual(true)
      expect(deltas(events)).toEqual(['one'])
    },
  )
}

function sharing(spec: Spec, expect: Expect): void {
  spec('two runs at once do not mix', [byHand, byHand], async ({ connection, server }) => {
    const first = drain(open(connection, 'r1'))
    const one = await server.request(1)
    const second = drain(open(connection, 'r2'))
    const two = await server.request(2)
    one.emit(text('a'))
    two.emit(text('b'), end())
    expect(deltas(await second)).toEqual(['b'])
    one.emit(text('c'), end())
    expect(deltas(await first)).toEqual(['a', 'c'])
  })

  const many = Array.from({ length: 30 }, (_, index) => [text(`${index}`)])
  spec('runs follow one another, each with its own events', many, async ({ connection, server }) => {
    for (let index = 0; index < many.length; index++) {
      expect(deltas(await drain(open(connection, `r${index}`)))).toEqual([`${index}`])
    }
    expect(server.openStreams).toEqual(0)
    expect(server.mostStreams).toEqual(1)
  })

  spec('after a stop the next run is served', [byHand, [text('Hello.')]], async ({ connection, server }) => {
    const stop = new AbortController()
    const reading = drain(open(connection, 'r1', stop.signal)).catch(() => [])
    await server.request(1)
    stop.abort()
    await reading
    expect(deltas(await drain(open(connection, 'r2')))).toEqual(['Hello.'])
  })
}

function chatting(spec: Spec, expect: Expect): void {
  const chained: RunScript[] = [gated(1), [resolve(), gated(2)], [resolve(), text('Done.')]]
  spec('a chain of approvals takes a request for each answer', chained, async ({ connection, server }) => {
    const client = new ChatClient({ connection })
    try {
      await client.sendMessage('go')
      for (const id of ['a1', 'a2']) {
        expect(await client.addToolApprovalResponse({ id, approved: true })).toEqual({ status: 'sent' })
      }
      expect(server.requests.map(({ resume }) => resume?.map(({ interruptId }) => interruptId))).toEqual([
        undefined,
        ['a1'],
        ['a2'],
      ])
      expect(client.getSnapshot().status).toEqual('ready')
    } finally {
      client.dispose()
    }
  })

  spec(
    'a cut leaves the chat in error, and retry() goes on',
    [[text('one'), cut()], [text('two')]],
    async (under) => {
      const client = new ChatClient({ connection: under.connection })
      try {
        await client.sendMessage('go')
        expect((await until(client, ({ isLoading }) => !isLoading)).status).toEqual('error')
        await client.retry()
        expect(client.getSnapshot().status).toEqual('ready')
      } finally {
        client.dispose()
      }
    },
  )

  // Skipped for connections without a live channel.
  spec(
    'a live answer reaches its open run, and no other',
    [[gated(1), hold()]],
    async ({ connection, server }) => {
      if (!connection.answer) return
      const stop = new AbortController()
      const { signal } = stop
      const reading = drain(open(connection, 'r1', signal)).catch(() => [])
      await server.held()
      const answers = (runId: string) => ({
        threadId: 'thread',
        runId,
        resume: [{ interruptId: 'a1', status: 'resolved' as const, payload: { approved: true } }],
      })
      await connection.answer(answers('r1'), { signal, headers: {} })
      const elsewhere = connection.answer(answers('another'), { signal, headers: {} }).then(
        () => 'taken',
        () => 'not taken',
      )
      expect(await elsewhere).toEqual('not taken')
      server.release()
      await reading
      expect(server.requests.length).toEqual(1)
    },
  )
}

function inputOf(runId: string): RunAgentInput {
  const message = { id: 'm0', role: 'user' as const, content: 'Größe 🙂' }
  return { threadId: 'thread', runId, protocolVersion: '1.0', messages: [message], tools: [], context: [] }
}

function open(
  connection: Connection,
  runId: string,
  signal = new AbortController().signal,
): AsyncIterable<unknown> {
  return connection.connect(inputOf(runId), { signal, messages: [], headers: {}, onEventId: () => {} })
}

async function drain(batches: AsyncIterable<unknown>, events: unknown[] = []): Promise<unknown[]> {
  for await (const batch of batches) events.push(...flat(batch))
  return events
}

function flat(batch: unknown): readonly unknown[] {
  return Array.isArray(batch) ? batch : [batch]
}

/** The texts in the events. */
function deltas(events: readonly unknown[]): string[] {
  return (events as readonly AGUIEvent[]).flatMap((event) =>
    event.type === 'TEXT_MESSAGE_CONTENT' ? [event.delta] : [],
  )
}
