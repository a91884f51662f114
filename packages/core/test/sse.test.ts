import { readServerSentEvents, type SseBatch, type SseOptions } from '@countersign/core'
import { createParser } from 'eventsource-parser'
import fc from 'fast-check'
import { expect, test } from 'vitest'

const seed = 20_260_103
const encoder = new TextEncoder()

interface Outcome {
  batches: SseBatch[]
  error?: unknown
}

async function readAll(reads: Iterable<string | Uint8Array>, options?: SseOptions): Promise<Outcome> {
  return collect(readServerSentEvents(streamOf(reads), options))
}

async function collect(events: AsyncIterable<SseBatch>): Promise<Outcome> {
  const batches: SseBatch[] = []
  try {
    for await (const batch of events) batches.push(batch)
    return { batches }
  } catch (error) {
    return { batches, error }
  }
}

function bytesOf(read: string | Uint8Array): Uint8Array {
  return typeof read === 'string' ? encoder.encode(read) : read
}

function streamOf(reads: Iterable<string | Uint8Array>): ReadableStream<Uint8Array> {
  const rest = [...reads]
  return new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        const next = rest.shift()
        if (next === undefined) controller.close()
        else controller.enqueue(bytesOf(next))
      },
    },
    { highWaterMark: 0 },
  )
}

async function* iterate(reads: Iterable<string | Uint8Array>): AsyncGenerator<Uint8Array> {
  for (const read of reads) yield bytesOf(read)
}

function dataOf({ batches }: Outcome): unknown[] {
  return batches.flat().map((event) => event.data)
}

const multiByte = ['{"text":"Grüße \u{1f469}\u200d\u{1f680} e\u0301 \u20ac"}', '"\u{1f600}"', '{"n":1}']

test('every byte boundary: the events are the same wherever one read ends and the next begins', async () => {
  for (const lineEnd of ['\n', '\r\n', '\r']) {
    const lines = multiByte.flatMap((data, i) => [
      ': ping',
      `id: run:${i}`,
      'event: message',
      `data: ${data}`,
      '',
    ])
    const bytes = encoder.encode([...lines, ''].join(lineEnd))
    const expected = multiByte.map((data, i) => ({ data: JSON.parse(data), id: `run:${i}` }))
    for (let cut = 0; cut <= bytes.length; cut++) {
      const outcome = await readAll([bytes.subarray(0, cut), bytes.subarray(cut)])
      expect(outcome.error).toBeUndefined()
      expect(outcome.batches.flat()).toEqual(expected)
    }
  }
})

test('one byte a read gives the same events', async () => {
  const bytes = encoder.encode(multiByte.map((data) => `data: ${data}\r\n\r\n`).join(''))
  const outcome = await readAll(Array.from(bytes, (byte) => Uint8Array.of(byte)))
  expect(outcome.batches.map((batch) => batch.length).filter(Boolean)).toEqual([1, 1, 1])
  expect(dataOf(outcome)).toEqual(multiByte.map((data) => JSON.parse(data)))
})

test('random streams at random cuts equal the stream read at once', async () => {
  const line = fc.constantFrom(
    'data: 1',
    'data:"\u{1f600}é"',
    'data: [',
    'data: 2]',
    ': note',
    ':',
    'id: 7',
    'id',
    'retry: 10',
    'x: y',
    '',
  )
  const streams = fc.array(fc.tuple(line, fc.constantFrom('\n', '\r\n', '\r')), { maxLength: 30 })
  const property = fc.asyncProperty(streams, fc.array(fc.nat(), { maxLength: 12 }), async (lines, at) => {
    const bytes = encoder.encode(lines.flat().join(''))
    const cuts = [...at.map((n) => n % (bytes.length + 1)), 0, bytes.length].sort((a, b) => a - b)
    const whole = await readAll([bytes])
    const split = await readAll(cuts.slice(1).map((cut, i) => bytes.subarray(cuts[i], cut)))
    expect(split.batches.flat()).toEqual(whole.batches.flat())
    expect(split.error).toEqual(whole.error)
  })
  await fc.assert(property, { seed, numRuns: 1000 })
})

test('any stream gives the events that eventsource-parser finds in it', async () => {
  const data = fc.constantFrom('1', ' 2', '"\u{1f600}: é"', '"  x"', '[', '3]', '', '\u00a0', 'oops')
  const field = fc.constantFrom(
    'data:',
    'data',
    'data: ',
    ' data:',
    'id:',
    'id: ',
    'id',
    'event: ',
    'retry: ',
    ':',
    'Data:',
  )
  const text = fc.oneof(data, fc.constantFrom('a:1', '0', '\0'), fc.string({ unit: 'binary', maxLength: 4 }))
  const line = fc.tuple(field, text).map((pair) => pair.join('').replace(/[\r\n\ud800-\udfff\ufeff]/g, ''))
  const lines = fc.tuple(fc.oneof(line, fc.constant('')), fc.constantFrom('\n', '\r\n', '\r'))
  const streams = fc.array(lines, { maxLength: 40 })
  const property = fc.asyncProperty(streams, fc.array(fc.nat(), { maxLength: 8 }), async (parts, at) => {
    const whole = `${parts.flat().join('')}\n\n`
    const expected: { data: unknown; id?: string; event?: string }[] = []
    let faulty = false
    const parser = createParser({
      onEvent({ data, id, event }) {
        // An event with blank data holds no JSON, and is none (F30).
        if (faulty || data.trim() === '') return
        const type = event && event !== 'message' ? { event } : {}
        try {
          expected.push({ data: JSON.parse(data), ...(id !== undefined && { id }), ...type })
        } catch {
          faulty = true
        }
      },
    })
    parser.feed(whole)
    const bytes = encoder.encode(whole)
    const cuts = [...at.map((n) => n % (bytes.length + 1)), 0, bytes.length].sort((a, b) => a - b)
    const outcome = await readAll(cuts.slice(1).map((cut, i) => bytes.subarray(cuts[i], cut)))
    expect(outcome.batches.flat()).toEqual(expected)
    expect(outcome.error !== undefined).toBe(faulty)
  })
  await fc.assert(property, { seed, numRuns: 500 })
})

test('10,000 events in one read come in several batches, so that a page has its turn between them', async () => {
  const text = Array.from({ length: 10_000 }, (_, i) => `data: ${i}\n\n`).join('')
  const outcome = await readAll([text])
  expect(dataOf(outcome)).toEqual(Array.from({ length: 10_000 }, (_, i) => i))
  expect(Math.max(...outcome.batches.map((batch) => batch.length))).toBeLessThanOrEqual(1024)
})

test('nothing of a large read comes after an abort between its batches', async () => {
  const text = Array.from({ length: 10_000 }, (_, i) => `data: ${i}\n\n`).join('')
  const controller = new AbortController()
  const batches: SseBatch[] = []
  for await (const batch of readServerSentEvents(streamOf([text]), { signal: controller.signal })) {
    batches.push(batch)
    controller.abort()
  }
  expect(batches).toHaveLength(1)
})

test('a fault in a large read comes after all events before it', async () => {
  const text = Array.from({ length: 3_000 }, (_, i) => `data: ${i === 2_500 ? 'oops' : i}\n\n`).join('')
  const outcome = await readAll([text])
  expect(dataOf(outcome)).toEqual(Array.from({ length: 2_500 }, (_, i) => i))
  expect(outcome.error).toMatchObject({ code: 'malformed-event' })
})

test('a batch is what one read completed: nothing, if it ends a line but no event, as a comment does', async () => {
  const { batches } = await readAll([
    'data: 1\n\ndata: 2\n\nda',
    'ta: ',
    '3\n',
    '\n',
    ': ping\n\n',
    'data: 4\n\n',
  ])
  expect(batches).toEqual([[{ data: 1 }, { data: 2 }], [], [{ data: 3 }], [], [{ data: 4 }]])
})

test('an event without an id has no id member', async () => {
  const { batches } = await readAll(['id: a:1\ndata: 1\n\ndata: 2\n\nid: \ndata: 3\n\n'])
  expect(batches).toEqual([[{ data: 1, id: 'a:1' }, { data: 2 }, { data: 3, id: '' }]])
  expect(batches[0]?.[1]).not.toHaveProperty('id')
})

test('several data lines are one JSON text', async () => {
  expect(dataOf(await readAll(['data: {"a":\ndata: 1\ndata:}\n\n']))).toEqual([{ a: 1 }])
})

test('comments, other fields and events without data are skipped', async () => {
  const outcome = await readAll([':\n\n: ping\n\nevent: x\n\nretry: 5\n\nunknown: field\ndata: 1\n\n:\n'])
  expect(outcome).toEqual({ batches: [[{ data: 1 }]] })
})

test('a byte order mark is skipped', async () => {
  const bytes = Uint8Array.of(0xef, 0xbb, 0xbf, ...encoder.encode('data: 1\n\n'))
  for (let cut = 0; cut < 5; cut++)
    expect(dataOf(await readAll([bytes.subarray(0, cut), bytes.subarray(cut)]))).toEqual([1])
})

test('a CR at the end of a read closes its event at once', async () => {
  const { batches } = await readAll(['data: 1\r\r', 'data: 2\r\n\r', '\ndata: 3\r\r'])
  expect(batches).toEqual([[{ data: 1 }], [{ data: 2 }], [{ data: 3 }]])
})

test('an empty body has no events', async () => {
  expect(await readAll([])).toEqual({ batches: [] })
  expect(await readAll([new Uint8Array()])).toEqual({ batches: [] })
})

test('data that is not JSON is malformed-event with at most 200 characters of it, after the events before it', async () => {
  const { batches, error } = await readAll([
    `data: 1\n\ndata: oops${'x'.repeat(500)}\n\ndata: 2\n\n`,
    'data: 3\n\n',
  ])
  expect(batches).toEqual([[{ data: 1 }]])
  expect(error).toMatchObject({
    name: 'CountersignError',
    code: 'malformed-event',
    data: { text: `oops${'x'.repeat(196)}` },
  })
})

test('[DONE] is malformed-event unless it is the done option', async () => {
  const reads = ['data: 1\n\ndata: [DONE]\n\ndata: oops\n\n']
  expect(await readAll(reads)).toMatchObject({ batches: [[{ data: 1 }]], error: { code: 'malformed-event' } })
  expect(await readAll(reads, { done: '[DONE]' })).toEqual({ batches: [[{ data: 1 }]] })
})

test('bytes that are not UTF-8 are malformed-event', async () => {
  const outcome = await readAll(['data: 1\n\n', Uint8Array.of(0x64, 0xff, 0xfe)])
  expect(outcome).toMatchObject({ batches: [[{ data: 1 }]], error: { code: 'malformed-event', data: {} } })
})

test('truncation: a body that ends inside an event is truncated-stream at every byte', async () => {
  const first = 'data: 1\n\n'
  const second = encoder.encode('id: 2\nevent: e\ndata: "é\u{1f600}"\n')
  expect(await readAll([first])).toEqual({ batches: [[{ data: 1 }]] })
  for (let length = 1; length <= second.length; length++) {
    const whole = Uint8Array.of(...encoder.encode(first), ...second.subarray(0, length))
    for (const reads of [[first, second.subarray(0, length)], [whole]]) {
      const { error } = await readAll(reads)
      expect(error, `${length} bytes`).toMatchObject({ code: 'truncated-stream' })
    }
  }
})

test('truncation: the events before the cut are delivered, with LF, CRLF and CR', async () => {
  for (const end of ['\n', '\r\n', '\r']) {
    const outcome = await readAll([`data: 1${end}${end}data: 2${end}`])
    expect(outcome).toMatchObject({ batches: [[{ data: 1 }]], error: { code: 'truncated-stream' } })
  }
})

test('truncation: a comment at the end is not an unfinished event', async () => {
  for (const end of [': ping', ': ping\n', ':\r\n', ': a\n: b'])
    expect(await readAll([`data: 1\n\n${end}`])).toEqual({ batches: [[{ data: 1 }]] })
})

test('maxEventBytes: the limit is the same for one read and for many', async () => {
  const exact = `data: ${'"'.padEnd(99, 'x')}"\n\n`
  const over = `data: ${'"'.padEnd(100, 'x')}"\n\n`
  for (const size of [1, 7, 1000]) {
    const inPieces = (text: string) =>
      Array.from({ length: Math.ceil(text.length / size) }, (_, i) => text.slice(i * size, (i + 1) * size))
    expect((await readAll(inPieces(exact), { maxEventBytes: 100 })).error).toBeUndefined()
    const outcome = await readAll(inPieces(`data: 1\n\n${over}`), { maxEventBytes: 100 })
    expect(outcome.batches.flat()).toEqual([{ data: 1 }])
    expect(outcome.error).toMatchObject({ code: 'event-too-large', data: { limit: 100 } })
  }
})

test('maxEventBytes: data in many lines and a line that never ends are bounded', async () => {
  expect((await readAll(Array(50).fill('data: 123456789\n'), { maxEventBytes: 100 })).error).toMatchObject({
    code: 'event-too-large',
  })
  expect((await readAll(Array(50).fill('0123456789'), { maxEventBytes: 100 })).error).toMatchObject({
    code: 'event-too-large',
  })
})

test('an async iterable is read like a web stream', async () => {
  const events = await collect(readServerSentEvents(iterate(['data: 1\n\n', 'data: 2\n\n'])))
  expect(events).toEqual({ batches: [[{ data: 1 }], [{ data: 2 }]] })
})

test('stopping early cancels the body', async () => {
  const cancelled: unknown[] = []
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(encoder.encode('data: 1\n\n')),
    cancel: () => void cancelled.push('web stream'),
  })
  for await (const _ of readServerSentEvents(body)) break
  async function* endless() {
    try {
      while (true) yield encoder.encode('data: 1\n\n')
    } finally {
      cancelled.push('async iterable')
    }
  }
  for await (const _ of readServerSentEvents(endless())) break
  expect(cancelled).toEqual(['web stream', 'async iterable'])
})

test('a fault cancels the body', async () => {
  let cancelled = false
  const body = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(encoder.encode('data: oops\n\n')),
    cancel: () => {
      cancelled = true
    },
  })
  expect((await collect(readServerSentEvents(body))).error).toMatchObject({ code: 'malformed-event' })
  expect(cancelled).toBe(true)
})

test('a read body is left unlocked', async () => {
  const body = streamOf(['data: 1\n\n'])
  await collect(readServerSentEvents(body))
  await Promise.resolve()
  expect(body.locked).toBe(false)
})

test('abort ends a read that is under way, cancels the body and is not an error', async () => {
  let cancelled = false
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(encoder.encode('data: 1\n\ndata: unfini')),
    cancel: () => {
      cancelled = true
    },
  })
  const controller = new AbortController()
  const batches: SseBatch[] = []
  for await (const batch of readServerSentEvents(body, { signal: controller.signal })) {
    batches.push(batch)
    queueMicrotask(() => setTimeout(() => controller.abort()))
  }
  expect(batches).toEqual([[{ data: 1 }]])
  expect(cancelled).toBe(true)
})

test('abort ends a read of an async iterable that never answers', async () => {
  const never: AsyncIterable<Uint8Array> = {
    [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => {}) }),
  }
  const controller = new AbortController()
  setTimeout(() => controller.abort())
  expect(await collect(readServerSentEvents(never, { signal: controller.signal }))).toEqual({ batches: [] })
})

test('a body that fails because of the abort is not an error, and nothing is read after an abort', async () => {
  const controller = new AbortController()
  const failing = new ReadableStream<Uint8Array>({
    start: (body) => controller.signal.addEventListener('abort', () => body.error(controller.signal.reason)),
  })
  setTimeout(() => controller.abort())
  expect(await collect(readServerSentEvents(failing, { signal: controller.signal }))).toEqual({ batches: [] })
  const outcome = await collect(
    readServerSentEvents(streamOf(['data: 1\n\n']), { signal: controller.signal }),
  )
  expect(outcome).toEqual({ batches: [] })
})

test('a read that fails throws its own error, after the events before it', async () => {
  const failure = new TypeError('network error')
  async function* failing() {
    yield encoder.encode('data: 1\n\n')
    throw failure
  }
  const outcome = await collect(readServerSentEvents(failing()))
  expect(outcome.batches).toEqual([[{ data: 1 }]])
  expect(outcome.error).toBe(failure)
})
