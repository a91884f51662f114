import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { packages } from '../scripts/packages.mjs'

const root = join(import.meta.dirname, '..')
const reportFile = join(import.meta.dirname, 'api.json')

type Report = Record<string, readonly string[]>

/** The entries of a package as its manifest names them, by the file they are built from. */
function entriesOf(name: string): readonly string[] {
  const manifest = JSON.parse(readFileSync(join(root, 'packages', name, 'package.json'), 'utf8'))
  return Object.keys(manifest.exports ?? {})
    .map((entry) => (entry === '.' ? 'index' : entry.slice(2)))
    .filter((entry) => existsSync(join(root, 'packages', name, 'src', `${entry}.ts`)))
}

/** The names that a file exports, types included. Every entry names what it exports, one by one. */
function namesOf(file: string): readonly string[] {
  const source = readFileSync(file, 'utf8').replace(/\/\*[\s\S]*?\*\//g, '')
  const lists = [...source.matchAll(/^export (?:type )?\{([^}]*)\}/gm)].flatMap(([, list = '']) =>
    list.split(','),
  )
  const listed = lists.map(
    (item) =>
      item
        .trim()
        .replace(/^type /, '')
        .split(' as ')
        .at(-1) ?? '',
  )
  const declared = [
    ...source.matchAll(
      /^export (?:async |abstract )?(?:function\*?|class|const|interface|type|enum) (\w+)/gm,
    ),
  ].map(([, name = '']) => name)
  return [...new Set([...listed, ...declared])].filter((name) => name !== '').sort()
}

function readApi(): Report {
  const api: Record<string, readonly string[]> = {}
  for (const name of packages.map(({ name }) => name).sort()) {
    for (const entry of entriesOf(name)) {
      const names = namesOf(join(root, 'packages', name, 'src', `${entry}.ts`))
      if (names.length > 0) api[entry === 'index' ? name : `${name}/${entry}`] = names
    }
  }
  return api
}

const api = readApi()
if (process.env.RECORD_API) writeFileSync(reportFile, `${JSON.stringify(api, null, 2)}\n`)
const recorded: Report = JSON.parse(readFileSync(reportFile, 'utf8'))

test('S3.119 nothing that was public is gone: what is new comes beside it (RECORD_API=1 records a step on purpose)', () => {
  const gone = Object.entries(recorded).flatMap(([entry, names]) => {
    const now = new Set(api[entry] ?? [])
    return names.filter((name) => !now.has(name)).map((name) => `${entry}: ${name}`)
  })
  expect(gone).toEqual([])
})

test('U.18 the names of the seeds are exported where they do not clash', () => {
  const all = new Set(Object.values(api).flat())
  const seeds = [
    'isApprovalNeeded',
    'ToolkitRequiredError',
    'ToolNotFoundError',
    'ApprovalCache',
    'approvalCache',
    'ApprovalRequiredException',
    'shouldRequireApproval',
    'generateApprovalMessage',
    'sanitizeArgs',
    'findUnansweredCalls',
    'cancelAllPending',
    'isReconciled',
    'areAllToolsComplete',
  ]
  expect(seeds.filter((name) => !all.has(name))).toEqual([])
})
