import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type Found, readTables, replaceTables, verdictOf } from './report.mjs'
import { cells, playCells } from './run.mjs'

const page = readFileSync(join(import.meta.dirname, '../../docs/compare.md'), 'utf8')
const told = readTables(page)

/** What the page says of the cells that were played. */
const toldOf = (words: ReadonlyMap<string, string>) => [...words.keys()].map((name) => [name, told.get(name)])

/** `npm run test:full` plays all cells of all servers, in a step of its own. */
test('docs/compare.md says of the first cells of Countersign what a run finds', async () => {
  const words = await playCells(cells.filter((name) => name.startsWith('countersign/')).slice(0, 6))
  expect([...words]).toEqual(toldOf(words))
})

test('docs/compare.md says of a forged approval on each other server what a run finds', async () => {
  const words = await playCells(['ai-sdk/forged', 'tanstack/forged', 'langgraph/forged'])
  expect([...words]).toEqual(toldOf(words))
})

test('docs/compare.md has every cell once, and its tables are written as they are read', () => {
  expect([...told.keys()].sort()).toEqual([...cells].sort())
  expect(replaceTables(page, told)).toBe(page)
})

test('a cell that a run finds otherwise changes the page', () => {
  const words = new Map([...told, ['ai-sdk/forged', 'refused'] as const])
  expect(told.get('ai-sdk/forged')).not.toBe('refused')
  expect(readTables(replaceTables(page, words)).get('ai-sdk/forged')).toBe('refused')
})

const ada = { to: 'ada', amount: 10 }
const eve = { to: 'eve', amount: 999 }
const verdicts: readonly (readonly [string, Found])[] = [
  ['ran once', { approved: [ada], ran: [ada], owed: true }],
  ['ran twice', { approved: [ada], ran: [ada, ada] }],
  ['ran unapproved', { approved: [], ran: [ada] }],
  ['ran unapproved', { approved: [ada], ran: [{ ...ada, amount: 11 }] }],
  ['ran unapproved', { approved: [ada], ran: [ada, eve] }],
  ['ran after a denial', { approved: [], denied: [ada], ran: [ada] }],
  ['ran late', { approved: [ada], ran: [ada], late: true }],
  ['ran as edited', { approved: [], edited: [eve], ran: [eve] }],
  ['refused', { approved: [], ran: [] }],
  ['refused', { approved: [ada], ran: [], late: true }],
  ['lost', { approved: [ada], ran: [], owed: true }],
  ['lost', { approved: [ada], ran: [], owed: true, told: false }],
  ['not run, and says so', { approved: [ada], ran: [], owed: true, told: true }],
  ['one answer counts', { approved: [ada], ran: [], disagree: true, toldNotSent: true }],
  ['one answer counts', { approved: [ada], ran: [ada], disagree: true, toldNotSent: false }],
  ['ran, but says it did not', { approved: [ada], ran: [ada], disagree: true, toldNotSent: true }],
  ['ran twice', { approved: [ada], ran: [ada, ada], disagree: true }],
  ['does not apply', { cannot: 'it has none', ran: [] }],
  ['whole answer', { stream: 'whole', ran: [] }],
  ['rest is lost', { stream: 'cut', ran: [] }],
  ['model waits', { flood: { said: 4, grown: 20 }, ran: [] }],
  ['buffers all', { flood: { said: 64, grown: 80 }, ran: [] }],
  ['bounded', { flood: { said: 64, grown: 10 }, ran: [] }],
]

test.each(verdicts)('what ran decides that a cell says "%s"', (words, found) => {
  expect(verdictOf(found)).toBe(words)
})
