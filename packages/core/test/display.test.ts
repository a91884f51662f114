import { displayJson, displayText } from '@countersign/core'
import fc from 'fast-check'
import { expect, test } from 'vitest'

const seed = 20_260_104

test('ordinary text is one segment and stays as it is', () => {
  for (const text of [
    'rm -rf ./build',
    'Grüße aus Köln, 100 €',
    'Привет, мир',
    'Ελληνικά',
    '東京のホテル',
    '한국어 漢字',
    'a\tb\nc',
    'e\u0301',
  ])
    expect(displayText(text)).toEqual({
      segments: [{ type: 'text', text }],
      text,
      hidden: 0,
      lines: text.split('\n').length,
      suspicious: false,
    })
})

test('the empty text has no segments', () => {
  expect(displayText('')).toEqual({ segments: [], text: '', hidden: 0, lines: 0, suspicious: false })
})

const hiddenCharacters: Record<string, string> = {
  'C0 controls and DEL': '\u0000\u0007\u0008\u000b\u000c\u001b\u007f',
  'C1 controls': '\u0080\u0085\u009b\u009f',
  'bidirectional embeddings and overrides': '\u202a\u202b\u202c\u202d\u202e',
  'bidirectional isolates': '\u2066\u2067\u2068\u2069',
  'bidirectional marks': '\u200e\u200f\u061c',
  'characters without width': '\u200b\u200c\u200d\u2060\ufeff\u180e\u034f',
  'invisible operators': '\u2061\u2062\u2063\u2064\u206a\u206f',
  'soft hyphen': '\u00ad',
  'line and paragraph separators': '\u2028\u2029',
  'variation selectors': '\ufe00\ufe0f\u{e0100}\u{e01ef}\u180b',
  'tag characters': '\u{e0000}\u{e0001}\u{e0020}\u{e0041}\u{e007f}',
  fillers: '\u115f\u1160\u3164\uffa0\u17b4',
  'blanks that are no ordinary space': '\u2003\u2009\u200a\u205f\u1680\u2800',
  'F24 blanks of ordinary text': '\u00a0\u202f\u3000',
  'characters that are drawn as nothing': '\ufffc\u{1d159}',
  'private use': '\ue000\uf8ff\u{f0000}\u{10fffd}',
  'no characters': '\ufdd0\uffff\u{1ffff}',
  'halves of surrogate pairs': '\udc00 \ud83d',
}

for (const [name, characters] of Object.entries(hiddenCharacters)) {
  test(`${name} are written out`, () => {
    for (const char of characters) {
      if (char === ' ') continue
      const codePoint = char.codePointAt(0) ?? 0
      const written = `⟨U+${codePoint.toString(16).toUpperCase().padStart(4, '0')}⟩`
      const { segments, text, suspicious } = displayText(`a${char}b`)
      expect(segments).toEqual([
        { type: 'text', text: 'a' },
        { type: 'escaped', text: written, codePoint },
        { type: 'text', text: 'b' },
      ])
      expect(text).toBe(`a${written}b`)
      expect(suspicious).toBe(true)
    }
  })
}

test('in one line, line feeds and tabs are written out but not suspicious', () => {
  expect(displayText('a\n\tb', { multiline: false })).toMatchObject({
    text: 'a⟨U+000A⟩⟨U+0009⟩b',
    suspicious: false,
  })
})

test('a CR is written out, and suspicious unless it belongs to a CRLF', () => {
  expect(displayText('a\r\nb')).toMatchObject({ text: 'a⟨U+000D⟩\nb', suspicious: false })
  expect(displayText('a\r\nb', { multiline: false })).toMatchObject({
    text: 'a⟨U+000D⟩⟨U+000A⟩b',
    suspicious: false,
  })
  expect(displayText('safe\rrm')).toMatchObject({ text: 'safe⟨U+000D⟩rm', suspicious: true })
})

test('emoji sequences stay whole', () => {
  for (const emoji of [
    '\u{1f469}\u200d\u{1f680}',
    '\u2764\ufe0f',
    '\u{1f44d}\u{1f3fd}',
    '1\ufe0f\u20e3',
    '\u{1f469}\u{1f3fd}\u200d\u2764\ufe0f\u200d\u{1f468}',
    '\u{1f1e9}\u{1f1ea}',
  ])
    expect(displayText(`a ${emoji} b`)).toMatchObject({ text: `a ${emoji} b`, suspicious: false })
})

test('joiners and selectors that belong to no emoji are written out, also beside one', () => {
  expect(displayText('\u{1f600}\ufe0f\ufe0f').text).toBe('\u{1f600}\ufe0f⟨U+FE0F⟩')
  expect(displayText('\u{1f600}\u200da').text).toBe('\u{1f600}⟨U+200D⟩a')
  expect(displayText('1\ufe0f').text).toBe('1⟨U+FE0F⟩')
  expect(displayText('\u{1f3f4}\u{e0067}').text).toBe('\u{1f3f4}⟨U+E0067⟩')
})

test('words that mix scripts are marked, whole words in one script are not', () => {
  const { segments, suspicious } = displayText('to p\u0430yp\u0430l.com, привет')
  expect(segments).toEqual([
    { type: 'text', text: 'to ' },
    { type: 'mixed-script', text: 'p\u0430yp\u0430l', scripts: ['Latin', 'Cyrillic'] },
    { type: 'text', text: '.com, привет' },
  ])
  expect(suspicious).toBe(true)
  expect(displayText('\u039fslo').segments).toEqual([
    { type: 'mixed-script', text: '\u039fslo', scripts: ['Latin', 'Greek'] },
  ])
  expect(displayText('\u0430\u03bf').segments).toMatchObject([{ scripts: ['Cyrillic', 'Greek'] }])
})

test('scripts that are written together are not marked', () => {
  for (const text of ['Tシャツ', '東京tower', '5µm', 'x²', 'naïve', 'K8s', 'USB接口'])
    expect(displayText(text).suspicious, text).toBe(false)
})

test('a word longer than any one match is judged whole', () => {
  const word = `${'a'.repeat(1000)}\u0430`
  expect(displayText(`x ${word} y`).segments).toEqual([
    { type: 'text', text: 'x ' },
    { type: 'mixed-script', text: word, scripts: ['Latin', 'Cyrillic'] },
    { type: 'text', text: ' y' },
  ])
})

test('a hidden character divides a word and does not hide that the rest mixes scripts', () => {
  expect(displayText('a\u200bp\u0430').segments.map((segment) => segment.type)).toEqual([
    'text',
    'escaped',
    'mixed-script',
  ])
})

test('right-to-left words are isolated in the text, and only those', () => {
  expect(displayText('to: שלום\nfrom: me\nعربي').text).toBe(
    'to: \u2068שלום\u2069\nfrom: me\n\u2068عربي\u2069',
  )
  expect(displayText('שלום').segments).toEqual([{ type: 'text', text: 'שלום' }])
})

test('F24 every blank of Unicode but space, tab and line end is written out', () => {
  const blanks = Array.from({ length: 0x11_0000 }, (_, code) => String.fromCodePoint(code)).filter((char) =>
    /[\p{White_Space}\p{Zs}\p{Default_Ignorable_Code_Point}]/u.test(char),
  )
  const silent = blanks.filter((char) => !displayText(`a${char}b`).suspicious)
  expect(silent).toEqual(['\t', '\n', ' '])
})

test('F24 long runs of blanks are counted: more than 32 columns of spaces and tabs, more than 8 line ends', () => {
  const shown = (blanks: string) => displayText(`a${blanks}b`).text
  expect(shown(' '.repeat(32))).toBe(`a${' '.repeat(32)}b`)
  expect(shown(' '.repeat(5000))).toBe('a⟨5000 spaces⟩b')
  expect(shown('\t'.repeat(8))).toBe(`a${'\t'.repeat(8)}b`)
  expect(shown('\t'.repeat(9))).toBe('a⟨9 spaces and tabs⟩b')
  expect(shown(' \t'.repeat(20))).toBe('a⟨40 spaces and tabs⟩b')
  expect(shown('\n'.repeat(8))).toBe(`a${'\n'.repeat(8)}b`)
  expect(shown('\n'.repeat(80))).toBe('a⟨80 line ends⟩\nb')
  expect(shown(`${'  \n'.repeat(80)}  `)).toBe('a⟨80 line ends⟩\n  b')
  expect(displayText(`a${'\n'.repeat(80)}b`).segments[1]).toEqual({
    type: 'blank',
    text: '⟨80 line ends⟩\n',
    source: '\n'.repeat(80),
  })
  expect(displayText(' '.repeat(33)).suspicious).toBe(true)
  expect(displayText(`a\n${' '.repeat(40)}\n`, { multiline: false }).text).toBe(
    'a⟨U+000A⟩⟨40 spaces⟩⟨U+000A⟩',
  )
  expect(displayText('\n'.repeat(9), { multiline: false }).segments).toHaveLength(9)
})

test('F24 a right-to-left letter reorders nothing but its own phrase: every other character stays in its place', () => {
  const pieces = (text: string) => displayText(text).segments.map((segment) => segment.text)
  expect(pieces('א; rm -rf / # ok')).toEqual(['א', '; rm -rf / # ok'])
  expect(pieces('rm א/1/ב x')).toEqual(['rm ', 'א', '/1/', 'ב', ' x'])
  expect(pieces('say "שלום, עולם" twice')).toEqual(['say "', 'שלום, עולם', '" twice'])
  expect(pieces('{"א": "ב"}\nx')).toEqual(['{"א": "ב"}', '\nx'])
  expect(pieces('  שלום 100, (עולם)\nok')).toEqual(['  שלום 100, (עולם)', '\nok'])
  const letters = fc.constantFrom('א', 'ع', 'a', 'Z', ' ', ';', '/', '1', '"', ',', '\n')
  const property = fc.property(fc.string({ unit: letters }), (text) => {
    for (const piece of pieces(text)) expect(/[אع]/.test(piece) && /[aZ]/.test(piece)).toBe(false)
  })
  fc.assert(property, { seed, numRuns: 1000 })
})

test('F24 more than four accents on one letter are written out, and an accent on a blank', () => {
  expect(displayText(`e${'\u0301'.repeat(6)}x`).text).toBe(`e${'\u0301'.repeat(4)}⟨U+0301⟩⟨U+0301⟩x`)
  expect(displayText('a \u0301b').text).toBe('a ⟨U+0301⟩b')
  expect(displayText('a=\u0338b').suspicious).toBe(false)
  for (const text of [
    'Việt Nam'.normalize('NFD'),
    'שָׁלוֹם',
    'हिन्दी क्ष्म्य',
    'မြွှေး',
    'བསྒྲུབས',
    'ภาษาไทย',
    '1\u20e3',
  ])
    expect(displayText(text).suspicious, text).toBe(false)
})

test('F37 lines are counted, and cut, with what is written out and, in columns, with the rows of a long line', () => {
  expect(displayText('a\nb\nc', { maxLines: 2 })).toMatchObject({ text: 'a\nb', hidden: 2, lines: 2 })
  expect(displayText('a\nb', { maxLines: 2 })).toMatchObject({ hidden: 0, lines: 2 })
  expect(displayText('x'.repeat(100), { columns: 30 })).toMatchObject({ hidden: 0, lines: 4 })
  expect(displayText('x'.repeat(100), { maxLines: 3, columns: 30 })).toMatchObject({ hidden: 10, lines: 3 })
  expect(displayText('漢'.repeat(30), { maxLines: 1, columns: 30 })).toMatchObject({ hidden: 15, lines: 1 })
  expect(displayText(`a${'\n'.repeat(80)}b`, { maxLines: 1 })).toMatchObject({ text: 'a', hidden: 81 })
  expect(displayText('\u200b'.repeat(10), { maxLength: 20 })).toMatchObject({ hidden: 8 })
  expect(displayText('abc', { maxLines: 0 })).toMatchObject({ text: '', hidden: 3, lines: 0 })
})

test('truncation tells how many characters are hidden', () => {
  expect(displayText('abcdef', { maxLength: 4 })).toMatchObject({ text: 'abcd', hidden: 2 })
  expect(displayText('abcd', { maxLength: 4 })).toMatchObject({ text: 'abcd', hidden: 0 })
  expect(displayText('\u{1f600}\u{1f601}\u{1f602}', { maxLength: 1 })).toMatchObject({
    text: '\u{1f600}',
    hidden: 2,
  })
  expect(displayText('\u{1f600}\u{1f601}\u{1f602}', { maxLength: 3 })).toMatchObject({ hidden: 0 })
  expect(displayText('abc', { maxLength: 0 })).toMatchObject({ segments: [], text: '', hidden: 3 })
})

test('truncation divides no grapheme', () => {
  expect(displayText('ae\u0301x', { maxLength: 2 })).toMatchObject({ text: 'a', hidden: 3 })
  expect(displayText('a\u{1f469}\u200d\u{1f680}', { maxLength: 2 })).toMatchObject({ text: 'a', hidden: 3 })
  expect(displayText('a\u{1f1e9}\u{1f1ea}b', { maxLength: 2 })).toMatchObject({ text: 'a', hidden: 3 })
})

test('what truncation hides still counts as suspicious', () => {
  expect(displayText(`${'a'.repeat(50)}\u202e`, { maxLength: 10 })).toMatchObject({
    text: 'a'.repeat(10),
    hidden: 41,
    suspicious: true,
  })
  expect(displayText('abcd\u0435', { maxLength: 2 })).toMatchObject({
    segments: [{ type: 'text', text: 'ab' }],
    suspicious: true,
  })
})

test('the segments put together are the text, nothing invisible is left, nothing visible is lost', () => {
  const texts = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc
      .array(
        fc.constantFrom(
          ...'aя ο1-\n\t\r\u202e\u200d\ufe0f\u{1f600}\u{1f3fd}e\u0301\u00ad東',
          '\ud83d',
          '\ude00',
          ' '.repeat(20),
          '\n\n\n\n',
          'א',
        ),
      )
      .map((parts) => parts.join('')),
  )
  const property = fc.property(texts, fc.boolean(), (text, multiline) => {
    const { segments } = displayText(text, { multiline })
    const source = segments.map((segment) =>
      segment.type === 'escaped'
        ? String.fromCodePoint(segment.codePoint)
        : segment.type === 'blank'
          ? segment.source
          : segment.text,
    )
    expect(source.join('')).toBe(text)
    for (const segment of segments) {
      if (segment.type === 'escaped' || segment.type === 'blank') continue
      expect(segment.text).not.toBe('')
      expect(segment.text).not.toMatch(/ {33}|\n{9}/)
      expect(segment.text.replace(/\n|\t|\u200d|\ufe0e|\ufe0f/gu, '')).not.toMatch(
        /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u,
      )
      if (!multiline) expect(segment.text).not.toMatch(/[\n\t]/)
    }
  })
  fc.assert(property, { seed, numRuns: 3000 })
})

test('a truncated text and what it hides add up', () => {
  const property = fc.property(fc.string({ unit: 'grapheme' }), fc.nat(20), (text, maxLength) => {
    const { segments, hidden } = displayText(text, { maxLength })
    const shown = segments
      .map((segment) => (segment.type === 'escaped' ? String.fromCodePoint(segment.codePoint) : segment.text))
      .join('')
    expect(text.startsWith(shown)).toBe(true)
    expect([...shown].length).toBeLessThanOrEqual(maxLength)
    expect([...shown].length + hidden).toBe([...text].length)
  })
  fc.assert(property, { seed, numRuns: 1000 })
})

test('very long texts are shown: one word, one line, one emoji sequence, only hidden characters', () => {
  const length = 1_000_000
  expect(displayText('я'.repeat(length)).segments).toHaveLength(1)
  expect(displayText('plain text '.repeat(length / 10)).segments).toHaveLength(1)
  expect(displayText('a\u0435'.repeat(length)).segments).toHaveLength(1)
  expect(displayText('\u200b'.repeat(length / 10)).segments).toHaveLength(length / 10)
  expect(displayText('\u{1f600}\u200d'.repeat(length / 10)).suspicious).toBe(true)
  expect(displayText('x'.repeat(length * 10), { maxLength: 1000 }).hidden).toBe(length * 10 - 1000)
})

test('displayJson prints a value with an indentation of two spaces', () => {
  const value = {
    to: 'team@example.org',
    n: 1.5,
    list: [true, null, [], {}],
    nested: { a: [{ b: '"\\' }] },
    'a "key"': '',
  }
  expect(displayJson(value).text).toBe(JSON.stringify(value, null, 2))
  for (const scalar of ['text', 0, -1.5e-7, true, null, [], {}])
    expect(displayJson(scalar).text).toBe(JSON.stringify(scalar, null, 2))
})

test('displayJson equals JSON.stringify for random plain values', () => {
  const property = fc.property(fc.jsonValue({ stringUnit: 'grapheme-ascii', maxDepth: 5 }), (value) => {
    expect(displayJson(value).text).toBe(JSON.stringify(value, null, 2))
  })
  fc.assert(property, { seed, numRuns: 1000 })
})

test('displayJson writes out what keys and strings hide', () => {
  const { text, suspicious, segments } = displayJson({
    'a\u202eb': 'x\u001b[2J\u0008\u000c\u0000\ud83d',
    ok: 'line\nline\ttab',
  })
  expect(text).toBe(
    '{\n  "a⟨U+202E⟩b": "x⟨U+001B⟩[2J⟨U+0008⟩⟨U+000C⟩⟨U+0000⟩⟨U+D83D⟩",\n  "ok": "line\\nline\\ttab"\n}',
  )
  expect(suspicious).toBe(true)
  expect(segments.filter((segment) => segment.type === 'escaped')).toHaveLength(6)
})

test('displayJson leaves text that only looks like an escape alone', () => {
  for (const text of ['\\u001b', '\\\\u202e', '\\b', '\\n', '"\\"'])
    expect(displayJson(text)).toMatchObject({ text: JSON.stringify(text), suspicious: false })
})

test('displayJson in one line and truncated', () => {
  const value = { a: [1, { b: 'x\ny' }], c: {} }
  expect(displayJson(value, { multiline: false })).toMatchObject({
    text: JSON.stringify(value),
    suspicious: false,
  })
  expect(displayJson({ a: 'p\u0430y' }, { maxLength: 5 })).toMatchObject({
    text: '{\n  "',
    hidden: 11,
    suspicious: true,
  })
})

test('displayJson of nothing yet is empty', () => {
  expect(displayJson(undefined)).toEqual({ segments: [], text: '', hidden: 0, lines: 0, suspicious: false })
})

test('displayJson of a very deep or very wide value is bounded', () => {
  let deep: unknown = 1
  for (let level = 0; level < 20_000; level++) deep = [deep]
  expect(displayJson(deep).text.length).toBeLessThan(20_000 * 2 * 66)
  expect(displayJson(Array(300_000).fill(0)).text.length).toBe(300_000 * 5 + 2)
})
