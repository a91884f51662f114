import { clientTool } from '@countersign/core'
import { tool } from '@countersign/server'
import {
  type DescribedTool,
  generateApprovalMessage,
  heuristicApproval,
  shouldRequireApproval,
} from '@countersign/server/plan'
import { expect, test } from 'vitest'
import * as z from 'zod'
import { call, collect, input, requests, results, say, testAgent, user } from './support.js'

const make = (name: string, more: Partial<Parameters<typeof tool<string, typeof schema, unknown>>[0]> = {}) =>
  tool({ name, description: `Does ${name}`, input: schema, execute: () => name, ...more })
const schema = z.looseObject({})

const hits = (names: readonly string[], options = {}) =>
  names.filter((name) => shouldRequireApproval({ name }, options))

test('S3.32 the keywords hit in a name, in any case', () => {
  const names = ['execute_query', 'runCommand', 'DELETE_ROW', 'removeUser', 'Write', 'shell']
  expect(hits(names)).toEqual(names)
})

test('S3.33 S3.34 the keywords hit in a description; a missing or empty one is no harm', () => {
  expect(shouldRequireApproval({ name: 'tidy', description: 'Deletes old files' })).toBe(true)
  expect(shouldRequireApproval({ name: 'tidy', description: 'Runs a SHELL' })).toBe(true)
  for (const description of [undefined, '', 'Sorts files'])
    expect(shouldRequireApproval({ name: 'tidy', description })).toBe(false)
})

test('S3.35 names that only read are safe', () => {
  expect(hits(['get_weather', 'search_documents', 'list_files', 'read_file'])).toEqual([])
})

test('S3.36 the known false positives and negatives, for both ways of matching', () => {
  const wrongHits = ['rewrite_summary', 'nutshell_summary', 'undelete_note']
  const misses = ['send_email', 'drop_table', 'run_script', 'kill_process']
  expect(hits([...wrongHits, ...misses])).toEqual(wrongHits)
  expect(shouldRequireApproval({ name: 'look', description: 'It does not write.' })).toBe(true)

  const word = { match: 'word' } as const
  expect(hits([...wrongHits, ...misses], word)).toEqual([])
  expect(shouldRequireApproval({ name: 'look', description: 'It does not write.' }, word)).toBe(true)
  const real = ['delete_row', 'deleteRow', 'RemoveUser', 'EXECUTE', 'shell2', 'writes', 'bulk-removal']
  expect(hits(real, word)).toEqual(real)
  for (const description of ['Deleting a file.', 'Execution of a job', 'Removes it'])
    expect(shouldRequireApproval({ name: 'x', description }, word)).toBe(true)
  expect(hits(misses, { keywords: ['Send', 'drop', 'run', 'kill'] })).toEqual(misses)
  expect(hits(misses, { match: 'word', keywords: ['Send', 'drop', 'run', 'kill'] })).toEqual(misses)
})

test('S3.37 what a tool says itself beats the guess, in both directions', async () => {
  const sure = make('delete_cache', { needsApproval: false })
  const careful = make('get_weather', { needsApproval: true })
  const policy = make('remove_all', { approval: { required: false } })
  expect(heuristicApproval([sure, careful, policy])).toEqual([sure, careful, policy])
})

test('S3.38 annotations beat keywords', () => {
  const table: readonly [DescribedTool['annotations'], string, boolean][] = [
    [{ readOnlyHint: true }, 'delete_preview', false],
    [{ destructiveHint: true }, 'get_weather', true],
    [{ readOnlyHint: false, destructiveHint: false }, 'write_note', false],
    [{ readOnlyHint: false }, 'get_weather', true],
    [{ readOnlyHint: true, destructiveHint: true }, 'get_weather', true],
    [{ openWorldHint: true }, 'send_email', true],
    [{ openWorldHint: false }, 'get_weather', false],
    [{ openWorldHint: true, readOnlyHint: true }, 'search_web', false],
    [{ title: 'Removes' }, 'get_weather', false],
    [{}, 'delete_row', true],
  ]
  for (const [annotations, name, expected] of table)
    expect([name, annotations, shouldRequireApproval({ name, annotations })]).toEqual([
      name,
      annotations,
      expected,
    ])
})

test('S3.39 only tools that pass through the helper are touched, and they as copies', async () => {
  const given = [make('delete_row'), make('get_weather')]
  const [gated, safe] = heuristicApproval(given)
  expect(given[0]).not.toHaveProperty('needsApproval')
  expect(safe).toBe(given[1])
  expect(gated).toMatchObject({ name: 'delete_row', needsApproval: true, location: 'server' })
  const turn = [call(['c1', 'delete_row', {}]), say('ok')]
  const plain = testAgent(turn, { tools: given })
  expect(requests(await collect(plain.agent, input([user('go')])))).toEqual([])
  const guessed = testAgent(turn, { tools: heuristicApproval(given) })
  const [asked] = requests(await collect(guessed.agent, input([user('go')])))
  expect(asked?.approval.message).toContain('Does delete_row\n\n')
})

test('S3.39 client tools are guessed about as well', () => {
  const wipe = clientTool({ name: 'wipe', description: 'Removes all', input: schema, execute: () => 1 })
  expect(heuristicApproval([wipe])[0]).toMatchObject({ location: 'client', needsApproval: true })
})

test('S3.40 the message is the description, or the name, then a blank line and a fixed notice', () => {
  const [first, blank, notice, ...rest] = generateApprovalMessage({
    name: 'delete_row',
    description: ' Deletes a row. ',
  }).split('\n')
  expect([first, blank, rest]).toEqual(['Deletes a row.', '', []])
  expect(generateApprovalMessage({ name: 'delete_row', description: ' ' })).toBe(`delete_row\n\n${notice}`)
  expect(generateApprovalMessage({ name: 'delete_row' })).toBe(`delete_row\n\n${notice}`)
  const own = make('delete_row', { message: 'Sure?' })
  expect(heuristicApproval([own])[0]?.message).toBe('Sure?')
})

test('results of tools that are guessed safe are as ever', async () => {
  const { agent } = testAgent([call(['c1', 'get_weather', {}]), say('ok')], {
    tools: heuristicApproval([make('get_weather')]),
  })
  expect(results(await collect(agent, input([user('go')])))).toMatchObject([{ content: 'get_weather' }])
})
