import { expect, test } from 'vitest'
import { type Offer, parseAnswer, questionOf } from '../src/answer.js'

const all: Offer = { once: true, session: true, edit: true }
const line = (text: string, offer = all) => parseAnswer({ kind: 'line', text }, offer)

test('S3.102 the question names what is offered', () => {
  expect(questionOf({ ...all, edit: false })).toBe('[y]es / [s]ession / [n]o')
  expect(questionOf(all)).toBe('[y]es / [s]ession / [n]o / [e]dit')
  expect(questionOf({ once: true, session: false, edit: false })).toBe('[y]es / [n]o')
  expect(questionOf({ once: false, session: false, edit: false })).toBe('[n]o')
})

test('S3.103 y approves once, s for the session, n denies', () => {
  expect([line('y'), line('s'), line('n')]).toEqual([{ kind: 'once' }, { kind: 'session' }, { kind: 'deny' }])
})

test('S3.103 whatever else is typed denies', () => {
  for (const text of [
    '',
    '   ',
    'x',
    'yes',
    'yn',
    'ny',
    'y y',
    'ok',
    '1',
    'true',
    'ÿ',
    'у',
    '\u001b',
    'y\u200b',
  ])
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
  expect(line('y', { once: false, session: false, edit: false })).toEqual(denial)
})

test('S3.104 upper case and blanks around the letter are accepted', () => {
  expect(['Y', '  y ', '\ty\t'].map((text) => line(text).kind)).toEqual(['once', 'once', 'once'])
  expect([' S', 'N ', ' E '].map((text) => line(text).kind)).toEqual(['session', 'deny', 'edit'])
})
