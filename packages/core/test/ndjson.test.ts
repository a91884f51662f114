import { type JsonLinesOptions, readJsonLines } from '@countersign/core'
import { expect, test } from 'vitest'

const encoder = new TextEncoder()

async function readAll(reads: Iterable<string | Uint8Array>, options?: JsonLinesOptions) {
  const batches: (readonly unknown[])[] = []
  async function* body() {
    for (const read of reads) yield typeof read === 'string' ? encoder.encode(read) : read
  }
  try {
    for await (const batch of readJsonLines(body(), options)) batches.push(batch)
    return { batches }
  } catch (error) {
    return { batches, error }
  }
}

test('every byte boundary: the values are the same wherever one read ends and the next begins', async () => {
  const values = [{ text: 'Grüße \u{1f469}\u200d\u{1f680} e\u0301' }, '\u{1f600}', [1, null], 'a\u2028b']
  for (const lineEnd of ['\n', '\r\n']) {
    for (const lastEnd of [lineEnd, '']) {
      const bytes = encoder.encode(values.map((value) => JSON.stringify(value)).join(lineEnd) + lastEnd)
      for (let cut = 0; cut <= bytes.length; cut++) {
        const { batches, error } = await readAll([bytes.subarray(0, cut), bytes.subarray(cut)])
        expect(error).toBeUndefined()
        expect(batches.flat()).toEqual(values)
      }
    }
  }
})

test('a batch is what one read completed', async () => {
  expect(await readAll(['1\n2\n3', '4', '\n', '\n\r\n', '5\n6'])).toEqual({
    batches: [[1, 2], [34], [], [5], [6]],
  })
})

test('10,000 lines in one read come in several batches, so that a page has its turn between them', async () => {
  const { batches } = await readAll([Array.from({ length: 10_000 }, (_, i) => `${i}\n`).join('')])
  expect(batches.flat()).toEqual(Array.from({ length: 10_000 }, (_, i) => i))
  expect(Math.max(...batches.map((batch) => batch.length))).toBeLessThanOrEqual(1024)
})

test('empty lines and a byte order mark are skipped', async () => {
  expect(await readAll(['\ufeff\n\r\n{"a":1}\n\n\n 2 \n\r\n'])).toEqual({ batches: [[{ a: 1 }, 2]] })
  expect(await readAll(['\n', '\n'])).toEqual({ batches: [[], []] })
})

test('a last line without a line end counts if it is whole, else the stream is truncated', async () => {
  expect(await readAll(['1\n{"a":2}'])).toEqual({ batches: [[1], [{ a: 2 }]] })
  expect(await readAll(['1\n{"a":2'])).toMatchObject({
    batches: [[1]],
    error: { code: 'truncated-stream', data: { text: '{"a":2' } },
  })
  expect(await readAll(['"', Uint8Array.of(0xc3)])).toMatchObject({
    batches: [],
    error: { code: 'truncated-stream' },
  })
})

test('a line that is not JSON is malformed-event, after the lines before it', async () => {
  const outcome = await readAll([`1\noops${'x'.repeat(500)}\n2\n`])
  expect(outcome).toMatchObject({
    batches: [[1]],
    error: { code: 'malformed-event', data: { text: `oops${'x'.repeat(196)}` } },
  })
})

test('bytes that are not UTF-8 are malformed-event', async () => {
  expect(await readAll(['1\n', Uint8Array.of(0xff, 0x0a)])).toMatchObject({
    batches: [[1]],
    error: { code: 'malformed-event' },
  })
})

test('maxEventBytes: a longer line is event-too-large, in one read or many, ended or not', async () => {
  const line = `"${'x'.repeat(98)}"`
  expect(await readAll([`${line}\n`], { maxEventBytes: 100 })).toEqual({ batches: [[JSON.parse(line)]] })
  for (const reads of [
    [`1\n"x${line.slice(1)}\n`],
    ['1\n', ...`"x${line.slice(1)}\n`],
    [`1\n${'x'.repeat(101)}`],
  ])
    expect(await readAll(reads, { maxEventBytes: 100 })).toMatchObject({
      batches: [[1]],
      error: { code: 'event-too-large' },
    })
})

test('stopping early and abort end the body', async () => {
  let ended = 0
  async function* endless() {
    try {
      while (true) yield encoder.encode('1\n2')
    } finally {
      ended++
    }
  }
  for await (const batch of readJsonLines(endless())) {
    expect(batch).toEqual([1])
    break
  }
  const controller = new AbortController()
  for await (const _ of readJsonLines(endless(), { signal: controller.signal })) controller.abort()
  expect(ended).toBe(2)
})
