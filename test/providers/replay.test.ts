import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { full } from '../full.js'
import {
  casesOf,
  checkCase,
  isSpoken,
  ownFixtures,
  type ReplayCase,
  replayFolder,
  writeSizes,
  writtenCases,
} from './replay.mjs'

/** Writes of 7 bytes split every line and most characters; the other sizes add little that parsers see. */
const sizes = full ? writeSizes : [7]

/** Every recorded body, at every write size, gives the facts that an independent script read out of it. */
for (const entry of casesOf(ownFixtures)) {
  test.runIf(isSpoken(entry))(`${entry.id} gives its facts, however it is cut`, async () => {
    expect(await checkCase(entry, { sizes })).toEqual([])
  })
}

/** What no recording has: events, blocks, reasons and habits of servers that the SDKs' types or the providers' documents tell of. */
for (const entry of casesOf(writtenCases)) {
  test(`${entry.id}, as documented, gives its facts, however it is cut`, async () => {
    expect(await checkCase(entry, { folder: writtenCases, sizes })).toEqual([])
  })
}

/** A folder of the same form, with some of our cases and files that were written over. */
function folderOf(cases: readonly ReplayCase[], files: Readonly<Record<string, string>> = {}): string {
  const folder = mkdtempSync(join(tmpdir(), 'countersign-replay-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  for (const file of cases.flatMap((entry) => [entry.file, entry.expect])) {
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    copyFileSync(join(ownFixtures, file), join(folder, file))
  }
  const all = { 'index.json': JSON.stringify({ cases }), ...files }
  for (const [file, content] of Object.entries(all)) writeFileSync(join(folder, file), content)
  return folder
}

const [text, loop] = ['openai-chat/text', 'mistral/tool-loop.1'].map((id) => {
  const found = casesOf(ownFixtures).find((entry) => entry.id === id)
  return found ?? expect.fail(`there is no ${id}`)
}) as [ReplayCase, ReplayCase]

test('a folder of the form is replayed, and told per provider', async () => {
  expect(await replayFolder(folderOf([text, loop]), sizes)).toEqual({
    lines: ['openai-chat: 1 cases, 1 agreeing, 0 differing', 'mistral: 1 cases, 1 agreeing, 0 differing'],
    agrees: true,
  })
})

test('a case that differs is told with what differs, and the others go on', async () => {
  const wrong = JSON.stringify({ ...JSON.parse('{}'), text: 'other', finishReason: 'length' })
  const { lines, agrees } = await replayFolder(folderOf([text, loop], { [text.expect]: wrong }), sizes)
  expect(agrees).toBe(false)
  expect(lines[0]).toBe('openai-chat: 1 cases, 0 agreeing, 1 differing')
  expect(lines[1]).toMatch(/^ {2}openai-chat\/text: .*text/)
  expect(lines[2]).toBe('mistral: 1 cases, 1 agreeing, 0 differing')
})

test('a fact that is not known here is told by name and is no difference', async () => {
  const more = JSON.stringify({ text: 'x', moods: ['good'], stop: 1 })
  const { lines, agrees } = await replayFolder(folderOf([text], { [text.expect]: more }), sizes)
  expect(agrees).toBe(false)
  expect(lines).toEqual([
    'openai-chat: 1 cases, 0 agreeing, 1 differing',
    expect.stringMatching(/^ {2}openai-chat\/text: text: /),
    '  openai-chat/text: not judged, for no such fact is known here: moods, stop',
  ])
  expect(lines.join('\n')).not.toMatch(/moods: nothing/)
})

test('a protocol that no adapter speaks and files that cannot be read are differences with a reason', async () => {
  const spoken = { ...text, id: 'new/spoken', protocol: 'telegraph', provider: 'new' }
  const lost = { ...text, id: 'new/lost', file: 'new/lost.sse', provider: 'new' }
  const folder = folderOf([text, loop], { [loop.expect]: '{ half' })
  writeFileSync(join(folder, 'index.json'), JSON.stringify({ cases: [spoken, lost, loop] }))
  const { lines, agrees } = await replayFolder(folder)
  expect(agrees).toBe(false)
  expect(lines).toEqual([
    'new: 2 cases, 0 agreeing, 2 differing',
    '  new/spoken: there is no adapter for the protocol "telegraph"',
    expect.stringMatching(/^ {2}new\/lost: .*lost\.sse cannot be read/),
    'mistral: 1 cases, 0 agreeing, 1 differing',
    expect.stringMatching(/^ {2}mistral\/tool-loop\.1: .*is no JSON/),
  ])
})

test.each([
  ['an empty folder', {}, /index\.json cannot be read/],
  ['an index that is no JSON', { 'index.json': '{' }, /index\.json is no JSON/],
  ['an index without cases', { 'index.json': '{"cases":[]}' }, /lists no cases/],
  ['a case that lacks a member', { 'index.json': '{"cases":[{"id":"a"}]}' }, /the case "a" lacks provider/],
])('%s is told as that', async (_, files, message) => {
  const folder = folderOf([], files)
  if (!('index.json' in files)) rmSync(join(folder, 'index.json'))
  await expect(replayFolder(folder)).rejects.toThrow(message)
})
