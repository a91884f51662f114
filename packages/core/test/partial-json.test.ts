import { createJsonReader, type JsonReaderStatus } from '@countersign/core'
import fc from 'fast-check'
import { expect, test, vi } from 'vitest'

const seed = 20_260_101

function read(pieces: Iterable<string>): { status: JsonReaderStatus; value: unknown } {
  const reader = createJsonReader()
  for (const piece of pieces) reader.feed(piece)
  reader.end()
  return { status: reader.status, value: reader.value }
}

/** The value after every piece and after the end. */
function trace(pieces: Iterable<string>): unknown[] {
  const reader = createJsonReader()
  const values: unknown[] = []
  for (const piece of pieces) {
    reader.feed(piece)
    values.push(reader.value)
  }
  reader.end()
  values.push(reader.value)
  return values
}

function chunks(text: string, size: number): string[] {
  return Array.from({ length: Math.ceil(text.length / size) }, (_, i) => text.slice(i * size, (i + 1) * size))
}

function parse(text: string): { status: JsonReaderStatus; value?: unknown } {
  try {
    return { status: 'complete', value: JSON.parse(text) }
  } catch {
    return { status: 'invalid' }
  }
}

function expectLikeJsonParse(text: string, pieces: Iterable<string>): void {
  const expected = parse(text)
  const actual = read(pieces)
  expect(actual.status, JSON.stringify(text)).toBe(expected.status)
  if (expected.status !== 'complete') return
  expect(actual.value).toStrictEqual(expected.value)
  // toStrictEqual does not look at the order of keys.
  expect(JSON.stringify(actual.value)).toBe(JSON.stringify(expected.value))
}

/** Texts cut at random places; a cut may fall inside a surrogate pair or an escape. */
const pieces = (texts: fc.Arbitrary<string>) =>
  fc.tuple(texts, fc.array(fc.nat(), { maxLength: 20 })).map(([text, at]) => {
    const cuts = [...at.map((n) => n % (text.length + 1)), 0, text.length].sort((a, b) => a - b)
    return { text, pieces: cuts.slice(1).map((cut, i) => text.slice(cuts[i], cut)) }
  })

const anyString = fc.string({ unit: 'binary' })
const anyValue = fc.jsonValue({ stringUnit: 'binary', maxDepth: 6 })
const escapeAll = (json: string) =>
  json.replace(/[^\x20-\x7e]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
const anyJson = fc
  .tuple(anyValue, fc.constantFrom(undefined, 1, '\t', '  '), fc.boolean())
  .map(([value, indent, ascii]) => {
    const json = JSON.stringify(value, null, indent)
    return ascii && indent !== '\t' && indent === undefined ? escapeAll(json) : json
  })
/** Mostly broken texts, made of what JSON is made of. */
const almostJson = fc
  .array(
    fc.constantFrom(
      ...[
        '{',
        '}',
        '[',
        ']',
        ',',
        ':',
        '"',
        '"a"',
        '"__proto__":',
        '\\',
        '\\u',
        '\\ud83d',
        'n',
        'null',
        'tru',
        'true',
        'false',
      ],
      ...[
        ' ',
        '\n',
        '\t',
        '\u00a0',
        '\ufeff',
        '\u0000',
        '-',
        '+',
        '0',
        '01',
        '1',
        '.',
        'e',
        'E',
        '1.5e-7',
        '-0',
        'NaN',
      ],
    ),
    { maxLength: 12 },
  )
  .map((tokens) => tokens.join(''))

const awkward = [
  ...['0', '-0', '12', '1.5e+10', '1E5', '-1.25e-3', '1e999', '123456789012345678901234567890'],
  ...['true', 'false', 'null', ' true ', '\t\r\n null\n', '""', '"a"', '[]', '{}', ' [ ] ', ' { } '],
  ...[
    '[1,2,3]',
    '[[],{},[[]],{"a":{}}]',
    '{"a":1,"b":[true,null,"x"],"c":{"d":{}}}',
    '[0,-0,0]',
    '{"a":0,"a":-0}',
  ],
  ...[
    '"\\"\\\\\\/\\b\\f\\n\\r\\t"',
    '"\\u0041\\u00e9\\u20AC"',
    '"\\ud83d\\ude00"',
    '"\\ud83d"',
    '"\\ude00\\ud83d"',
    '"\\ud83dx"',
  ],
  ...['"\u{1f600}e\u0301"', '"\u2028\u2029\u007f"', '"\ud83d"', '{"\\u0061":1,"a":2}'],
  ...[
    '{"a":1,"b":2,"a":3}',
    '{"a":{"b":1},"a":[2]}',
    '{"2":"two","1":"one","a":0}',
    '{"":""}',
    '{"constructor":1,"toString":{}}',
  ],
  ...[
    '{"__proto__":1}',
    '{"__proto__":{"a":[1]}}',
    '{"__proto__":{},"__proto__":[1,2]}',
    '[{"__proto__":"x"},{"a":"__proto__"}]',
  ],
]

const broken = [
  ...[
    '',
    ' ',
    '\n',
    '[',
    '{',
    '"',
    '"a',
    '"\\',
    '"\\u12',
    '[1',
    '[1,',
    '{"a"',
    '{"a":',
    '{"a":1',
    '{"a":1,',
    '-',
    '1.',
    '1e',
    '1e+',
  ],
  ...[
    '01',
    '-01',
    '+1',
    '.5',
    '1.e5',
    '0x10',
    '1_000',
    'NaN',
    'Infinity',
    '-Infinity',
    'nul',
    'nulll',
    'True',
    'undefined',
  ],
  ...[
    '[1,]',
    '[,1]',
    '[1 2]',
    '[1,,2]',
    '{"a":1,}',
    '{,}',
    '{a:1}',
    "{'a':1}",
    '{"a" 1}',
    '{"a"::1}',
    '{"a":1 "b":2}',
    '{1:2}',
  ],
  ...[
    '[}',
    '{]',
    '[1}',
    '{"a":1]',
    ']',
    '}',
    ',',
    ':',
    '1 2',
    '1,2',
    '{}{}',
    '[]]',
    '"a""b"',
    'true false',
    '[1]x',
    'null,',
  ],
  ...[
    '"\n"',
    '"\t"',
    '"\u0000"',
    '"\u001f"',
    '"\\x"',
    '"\\u12g4"',
    '"\\u 123"',
    '"\\\n"',
    '"\\U0041"',
    '[\u00a01]',
    '\ufeff1',
    '1\u000b',
  ],
  ...[
    '[1]/* */',
    '// x\n1',
    '```json\n{}\n```',
    'Sure, here: {}',
    '{"a":tru}',
    '{"a":1}}',
    '[[1]',
    '{"a":{"b":1}',
  ],
]

test('a complete text equals JSON.parse, at every chunk size', () => {
  for (const text of awkward)
    for (let size = 1; size <= text.length; size++) expectLikeJsonParse(text, chunks(text, size))
})

test('a text is invalid exactly where JSON.parse throws, at every chunk size', () => {
  for (const text of broken)
    for (let size = 1; size <= text.length + 1; size++) expectLikeJsonParse(text, chunks(text, size))
})

test('random texts and random splits equal JSON.parse', () => {
  const property = fc.property(pieces(anyJson), ({ text, pieces }) => expectLikeJsonParse(text, pieces))
  fc.assert(property, { seed, numRuns: 2000 })
})

test('random broken texts are judged as JSON.parse judges them', () => {
  const property = fc.property(pieces(almostJson), ({ text, pieces }) => expectLikeJsonParse(text, pieces))
  fc.assert(property, { seed, numRuns: 5000 })
})

test('a random change in a valid text is judged as JSON.parse judges it', () => {
  const changed = fc
    .tuple(
      anyJson,
      fc.nat(),
      fc.nat(2),
      fc.constantFrom('"', '\\', ',', '}', ']', '0', '', '\u0001', 'e', '{'),
    )
    .map(([text, at, drop, insert]) => {
      const index = at % (text.length + 1)
      return text.slice(0, index) + insert + text.slice(index + drop)
    })
  const property = fc.property(pieces(changed), ({ text, pieces }) => expectLikeJsonParse(text, pieces))
  fc.assert(property, { seed, numRuns: 3000 })
})

test('the value depends on the text so far and not on how it was cut', () => {
  const texts = fc.oneof(anyJson, almostJson)
  const property = fc.property(pieces(texts), ({ pieces }) => {
    const bySteps = createJsonReader()
    let text = ''
    for (const piece of pieces) {
      bySteps.feed(piece)
      text += piece
      const atOnce = createJsonReader()
      atOnce.feed(text)
      expect(bySteps.status).toBe(atOnce.status)
      expect(bySteps.value).toStrictEqual(atOnce.value)
    }
  })
  fc.assert(property, { seed, numRuns: 1000 })
})

test('the value is undefined before anything is known', () => {
  const reader = createJsonReader()
  expect(reader).toMatchObject({ status: 'open', value: undefined })
  reader.feed(' \n')
  expect(reader.value).toBeUndefined()
  reader.feed('tru')
  expect(reader.value).toBeUndefined()
})

test('a worked trace of one value growing', () => {
  const steps = [
    '{',
    '"to',
    '":',
    '"te',
    'am',
    '","n',
    '":1',
    '2',
    ',"tags":[',
    'tr',
    'ue,',
    'nul',
    'l]',
    '}',
  ]
  expect(trace(steps)).toStrictEqual([
    {},
    {},
    {},
    { to: 'te' },
    { to: 'team' },
    { to: 'team' },
    { to: 'team' },
    { to: 'team' },
    { to: 'team', n: 12, tags: [] },
    { to: 'team', n: 12, tags: [] },
    { to: 'team', n: 12, tags: [true] },
    { to: 'team', n: 12, tags: [true] },
    { to: 'team', n: 12, tags: [true, null] },
    { to: 'team', n: 12, tags: [true, null] },
    { to: 'team', n: 12, tags: [true, null] },
  ])
})

test('strings only grow', () => {
  const property = fc.property(pieces(anyString.map((text) => JSON.stringify(text))), ({ text, pieces }) => {
    let before = ''
    for (const value of trace(pieces)) {
      if (value === undefined) continue
      expect(String(value).startsWith(before)).toBe(true)
      before = String(value)
    }
    expect(before).toBe(JSON.parse(text))
  })
  fc.assert(property, { seed, numRuns: 1000 })
})

test('an open string never ends in half of a surrogate pair', () => {
  expect(trace(['"a\ud83d', '\ude00', 'b', '"'])).toEqual([
    'a',
    'a\u{1f600}',
    'a\u{1f600}b',
    'a\u{1f600}b',
    'a\u{1f600}b',
  ])
  expect(trace(['"\\ud83d', '\\ude0', '0"'])).toEqual(['', '', '\u{1f600}', '\u{1f600}'])
})

test('a lone surrogate is kept as JSON.parse keeps it', () => {
  expect(trace(['"\\ud83d', 'x', '\ude00', '"']).at(-1)).toBe('\ud83dx\ude00')
  expect(trace(['"\ud83d', '"']).at(-1)).toBe('\ud83d')
})

test('atomic values are atomic', () => {
  const property = fc.property(pieces(anyJson), ({ text, pieces }) => {
    const atoms = collectAtoms(JSON.parse(text))
    for (const value of trace(pieces)) for (const atom of collectAtoms(value)) expect(atoms).toContain(atom)
  })
  fc.assert(property, { seed, numRuns: 300 })
})

test('an earlier published value never changes', () => {
  const property = fc.property(pieces(anyJson), ({ pieces }) => {
    const reader = createJsonReader()
    const seen: { value: unknown; copy: unknown }[] = []
    for (const piece of pieces) {
      reader.feed(piece)
      const { value } = reader
      deepFreeze(value)
      seen.push({ value, copy: structuredClone(value) })
    }
    reader.end()
    for (const { value, copy } of seen) expect(value).toEqual(copy)
  })
  fc.assert(property, { seed, numRuns: 1000 })
})

test('finished containers are shared between published values', () => {
  const reader = createJsonReader()
  reader.feed('{"rows":[{"id":1},[2],{"id":')
  const before = reader.value as { rows: unknown[] }
  reader.feed('3}],"x":"y')
  const after = reader.value as { rows: unknown[] }
  reader.feed('z"}')
  const last = reader.value as { rows: unknown[] }
  expect(after).not.toBe(before)
  expect(after.rows).not.toBe(before.rows)
  expect(after.rows[0]).toBe(before.rows[0])
  expect(after.rows[1]).toBe(before.rows[1])
  expect(last.rows).toBe(after.rows)
})

test('reading the value again without a change gives the same object', () => {
  const reader = createJsonReader()
  reader.feed('{"a":[{"b":"c')
  const { value } = reader
  expect(reader.value).toBe(value)
  reader.feed('')
  expect(reader.value).toBe(value)
  reader.feed('\\')
  expect(reader.value).toBe(value)
  reader.feed('n')
  expect(reader.value).toEqual({ a: [{ b: 'c\n' }] })
})

test('what was complete when it was read keeps its identity when its bracket closes', () => {
  const reader = createJsonReader()
  reader.feed('{"a":{"b":[1,2 ')
  const { value } = reader
  reader.feed(']}} ')
  reader.end()
  expect(reader.status).toBe('complete')
  expect(reader.value).toBe(value)
})

test('__proto__ is an own property and pollutes nothing', () => {
  const reader = createJsonReader()
  reader.feed('{"a":{"__proto__":{"polluted":"ye')
  const open = reader.value as { a: object }
  expect(Object.getPrototypeOf(open.a)).toBe(Object.prototype)
  expect(Object.hasOwn(open.a, '__proto__')).toBe(true)
  reader.feed('s"},"b":1}}')
  const closed = reader.value as { a: object }
  expect(Object.keys(closed.a)).toEqual(['__proto__', 'b'])
  expect('polluted' in {}).toBe(false)
})

test('an invalid text keeps the last good value, and feeding it more does nothing', () => {
  const reader = createJsonReader()
  reader.feed('{"a":[1,"two"]')
  reader.feed(',]')
  expect(reader).toMatchObject({ status: 'invalid', value: { a: [1, 'two'] } })
  const { value } = reader
  reader.feed('"b":3}')
  reader.end()
  expect(reader.status).toBe('invalid')
  expect(reader.value).toBe(value)
})

test('a text that ends too early is invalid and keeps its value', () => {
  const reader = createJsonReader()
  reader.feed('{"a":"unfinish')
  reader.end()
  expect(reader).toMatchObject({ status: 'invalid', value: { a: 'unfinish' } })
})

test('feeding after the end does nothing', () => {
  const reader = createJsonReader()
  reader.feed('1')
  expect(reader).toMatchObject({ status: 'open', value: undefined })
  reader.end()
  reader.feed('2')
  reader.end()
  expect(reader).toMatchObject({ status: 'complete', value: 1 })
})

test('20,000 levels are read, one character at a time', () => {
  const depth = 20_000
  const half = depth / 2
  const text = `${'[{"a":'.repeat(half)}1${'}]'.repeat(half)}`
  const reader = createJsonReader()
  for (const char of text) reader.feed(char)
  reader.end()
  expect(reader.status).toBe('complete')
  let value = reader.value
  for (let level = 0; level < half; level++) value = (value as [{ a: unknown }])[0].a
  expect(value).toBe(1)
})

test('an open text of 20,000 levels has a value', () => {
  const reader = createJsonReader()
  reader.feed('['.repeat(20_000))
  let depth = 0
  for (let value = reader.value; Array.isArray(value); value = value[0]) depth++
  expect(depth).toBe(20_000)
})

test('maxDepth: deeper text is invalid', () => {
  const reader = createJsonReader({ maxDepth: 2 })
  reader.feed('[[],{"a":1}')
  expect(reader.status).toBe('open')
  reader.feed(',[[')
  expect(reader).toMatchObject({ status: 'invalid', value: [[], { a: 1 }, []] })
})

test('each character is looked at a constant number of times, however much came before', () => {
  const row = '{"id":12345,"name":"Gruesse \\u00e9 \\"x\\"","ok":true}'
  for (const text of [`["${'long text '.repeat(4_000)}"]`, `[${Array(800).fill(row).join(',')}]`]) {
    const deltas = chunks(text, 50)
    const looks = countCharacterReads(() => {
      const reader = createJsonReader()
      for (const delta of deltas) reader.feed(delta)
    })
    expect(looks).toBeGreaterThan(text.length)
    expect(looks).toBeLessThan(text.length * 4)
  }
})

function countCharacterReads(run: () => void): number {
  const spies = [vi.spyOn(String.prototype, 'charAt'), vi.spyOn(String.prototype, 'charCodeAt')]
  try {
    run()
    return spies.reduce((sum, spy) => sum + spy.mock.calls.length, 0)
  } finally {
    for (const spy of spies) spy.mockRestore()
  }
}

function collectAtoms(value: unknown): unknown[] {
  if (typeof value === 'string' || value === undefined) return []
  if (typeof value !== 'object' || value === null) return [value]
  return Object.values(value).flatMap(collectAtoms)
}

function deepFreeze(value: unknown): void {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return
  Object.freeze(value)
  for (const child of Object.values(value)) deepFreeze(child)
}
