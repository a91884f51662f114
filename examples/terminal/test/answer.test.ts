import { expect, test } from 'vitest'
import { type Offer, parseAnswer, questionOf } from '../src/answer.js'

const all: Offer = { once: true, session: true, edit: true, more: false, mandates: [] }
const none: Offer = { once: false, session: false, edit: false, more: false, mandates: [] }
const line = (text: string, offer = all) => parseAnswer({ kind: 'line', text }, offer)

test('S3.102 the question names what is offered', () => {
  expect(questionOf({ ...all, edit: false })).toBe('[y]es / [s]ession / [n]o')
  expect(questionOf(all)).toBe('[y]es / [s]ession / [n]o / [e]dit')
  expect(questionOf({ ...none, once: true })).toBe('[y]es / [n]o')
  expect(questionOf(none)).toBe('[n]o')
})

test('S3.103 y approves once, s for the session, n denies', () => {
  expect([line('y'), line('s'), line('n')]).toEqual([{ kind: 'once' }, { kind: 'session' }, { kind: 'deny' }])
})

test('F45 the words of the question are answers as much as their letters, in any case', () => {
  const kinds = (...typed: string[]) => typed.map((text) => line(text).kind)
  expect(kinds('yes', 'YES', ' Yes ')).toEqual(['once', 'once', 'once'])
  expect(kinds('session', 'no', 'No', 'edit')).toEqual(['session', 'deny', 'deny', 'edit'])
  expect(line('no')).toEqual({ kind: 'deny' })
  expect(line('yes', none)).toMatchObject({ kind: 'deny', because: 'not one of the answers' })
  expect(kinds('yess', 'ye', 'yes yes', 'more')).toEqual(['deny', 'deny', 'deny', 'deny'])
})

test('F37 of what is not all shown only the rest is offered, and a yes to it shows the rest', () => {
  const held: Offer = { ...none, more: true }
  expect(questionOf(held)).toBe('[m]ore / [n]o')
  for (const typed of ['m', 'more', 'y', 'yes', 's', 'e']) expect(line(typed, held)).toEqual({ kind: 'more' })
  expect(line('n', held)).toEqual({ kind: 'deny' })
  expect(line('', held)).toMatchObject({ kind: 'deny' })
})

test('S3.103 whatever else is typed denies', () => {
  for (const text of ['', '   ', 'x', 'yn', 'ny', 'y y', 'ok', '1', 'true', 'ÿ', 'у', '\u001b', 'y\u200b'])
    expect(line(text)).toMatchObject({ kind: 'deny', because: expect.any(String) })
})

test('S3.103 EOF, Ctrl-C and Escape deny', () => {
  for (const kind of ['ended', 'interrupted', 'escaped'] as const)
    expect(parseAnswer({ kind }, all)).toMatchObject({ kind: 'deny', because: expect.any(String) })
})

test('S3.103 a letter that is not offered denies', () => {
  const denial = { kind: 'deny', because: 'not one of the answers' }
  expect(line('s', { ...all, session: false })).toEqual(denial)
  expect(line('e', { ...all, edit: false })).toEqual(denial)
  expect(line('y', none)).toEqual(denial)
})

test('S3.104 upper case and blanks around the letter are accepted', () => {
  expect(['Y', '  y ', '\ty\t'].map((text) => line(text).kind)).toEqual(['once', 'once', 'once'])
  expect([' S', 'N ', ' E '].map((text) => line(text).kind)).toEqual(['session', 'deny', 'edit'])
})

test('V16 a number chooses a mandate that is offered; of what is not all shown it shows the rest', () => {
  const offer: Offer = { ...all, mandates: [true, false] }
  expect(questionOf(offer)).toBe('[y]es / [s]ession / [n]o / [e]dit / [1]')
  expect(line('1', offer)).toEqual({ kind: 'mandate', at: 0 })
  for (const text of ['2', '3', '0', '01x', '-1']) expect(line(text, offer)).toMatchObject({ kind: 'deny' })
  expect(line('2', { ...none, more: true, mandates: [true, false] })).toEqual({ kind: 'more' })
})
