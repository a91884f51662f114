import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { ChatClient } from '@countersign/client'
import { scriptedConnection } from '@countersign/testing'
import { expect, test } from 'vitest'
import { blocksOf, proseOf, readPage } from './markdown.js'

const root = join(import.meta.dirname, '../..')

function cell(page: string, term: string): string {
  return (
    proseOf(page)
      .split('\n')
      .find((line) => line.startsWith(`| **${term}**`)) ?? ''
  )
}

function namesOf(index: string): string {
  return readFileSync(join(root, index), 'utf8')
}

test('U.17 the glossary maps the terms of other systems to ours, and names only what there is', () => {
  const page = 'docs/glossary.md'
  expect(cell(page, 'denied')).toMatch(/Cancel.*cancelled/)
  expect(cell(page, 'cancelled')).toContain('nobody approved or denied')
  expect(cell(page, 'approval id')).toContain('never derived from the call')
  expect(cell(page, 'call id')).toContain('toolCallId')
  expect(cell(page, 'session')).toMatch(/Always.*cached/)
  expect(cell(page, 'pending')).toContain('missing')
  const entries: Record<string, readonly string[]> = JSON.parse(readPage('test/api.json'))
  const optionNames = namesOf('packages/client/src/options.ts').match(/(?<=^ {2})\w+(?=\?: )/gm) ?? []
  const places = new Map([
    ['', [...(entries.server ?? []), ...(entries['server/plan'] ?? [])]],
    ['of `@countersign/core`', entries.core],
    ['a method of `ChatClient`', Object.keys(new ChatClient({ connection: scriptedConnection([]) }))],
    ['an option of `ChatClient`', optionNames],
  ])
  const [, list = ''] = proseOf(page).split('exist under the name that they have elsewhere:')
  const names = [...list.replaceAll('\n', ' ').matchAll(/`(\w+)`(?: \(([^)]+)\))?[,.]?/g)]
  expect(names.map(([, name]) => name)).toContain('isApprovalNeeded')
  const missing = names.filter(([, name = '', place = '']) => {
    const same = place.startsWith('the same as')
    return !places.get(same ? '' : place)?.includes(name)
  })
  expect(missing.map(([text]) => text)).toEqual([])
})

test('S0.69 the property, the parts, their constructors and the errors are described, each with an example that runs', () => {
  const page = 'docs/history-parts.md'
  const examples = blocksOf(page).filter(({ mark }) => mark === 'run')
  const described = [
    'needsApproval',
    'tool-approval-request',
    'tool-approval-response',
    'toolApprovalRequest',
    'toolApprovalResponse',
    'toolMessage',
    'ToolkitRequiredError',
    'ToolNotFoundError',
  ]
  for (const name of described) {
    expect(proseOf(page), name).toContain(name)
    expect(
      examples.some(({ code }) => code.includes(name)),
      name,
    ).toBe(true)
  }
})

test('S2.67 the recipes page says when to choose a map and when a channel, what a failed call becomes, and how to run both', () => {
  const prose = proseOf('docs/recipes.md')
  for (const word of ['map', 'channel', 'denied', 'cancelled', 'execution_error', 'unknown_tool', 'reconcil'])
    expect(prose, word).toContain(word)
  const recipes = readdirSync(join(root, 'examples/recipes/src'))
  for (const [, file = ''] of prose.matchAll(/`([\w-]+\.ts)`/g)) expect(recipes).toContain(file)
})

test('S3.120 the guide tells the user how it works, what is asked, the three choices, and where arguments go', () => {
  const [, forPerson = ''] = proseOf('docs/approvals.md').split('## What the user sees')
  for (const word of ['deny', 'once', 'session', 'masked', 'audit trail', 'log'])
    expect(forPerson, word).toContain(word)
})

test('S3.121 the guide tells developers how to add an approval, of policies and heuristics, and what to do in trouble', () => {
  const prose = proseOf('docs/approvals.md')
  for (const word of ['needsApproval', 'policy', 'heuristicApproval', '## Troubleshooting'])
    expect(prose, word).toContain(word)
  const [, seen = ''] = proseOf('docs/errors.md').split('## Nothing happens')
  for (const symptom of ['a card never appears', 'stays `waiting`', '`approval-conflict`', 'client tool'])
    expect(seen, symptom).toContain(symptom)
})

test('S3.122 the MCP page and the reference tell of approvals', () => {
  expect(readPage('packages/mcp/README.md')).toContain('needs approval')
  expect(proseOf('docs/approvals.md')).toContain('mcpTools')
  expect(readFileSync(join(root, 'packages/mcp/src/mcp-tools.ts'), 'utf8')).toMatch(/needsApproval|approval/)
})

test('S3.123 what is not planned is written down', () => {
  const [, not = ''] = proseOf('docs/faq.md').split('## What it is not')
  for (const word of ['analytics', 'roles', 'patterns over paths', 'compliance', 'several people'])
    expect(not, word).toContain(word)
})

test('AGENTS.md is a dozen lines and CONTRIBUTING.md one screen', () => {
  expect(readPage('AGENTS.md').trim().split('\n').length).toBeLessThanOrEqual(14)
  expect(readPage('CONTRIBUTING.md').trim().split('\n').length).toBeLessThanOrEqual(48)
})
