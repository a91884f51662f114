// The benchmark: `npm run bench -- [--quick] [--only w1,w5] [--page] [--json file] [--no-build]`. Prints a table for each workload and what
// of it holds. A whole run writes docs/performance.md; with `--page` a run of some workloads puts theirs into it.
import { fork } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { cpus } from 'node:os'
import { dirname, join } from 'node:path'
import { fail, given, readArguments } from '../../scripts/arguments.mjs'
import { buildChanged } from './build.mjs'
import { judge } from './claims.mjs'
import { markdown, number, plain } from './report.mjs'
import { workloads } from './workloads/index.mjs'

const root = join(import.meta.dirname, '../..')

/** Runs one workload in a process of its own: a clean heap, production mode, and a collector to call. */
function runWorkload(name, options) {
  return new Promise((resolve, reject) => {
    const env = { ...process.env, NODE_ENV: 'production' }
    const child = fork(join(import.meta.dirname, 'child.mjs'), [name, JSON.stringify(options)], {
      env,
      execArgv: ['--expose-gc'],
    })
    let tables
    child.on('message', (message) => {
      tables = message
    })
    child.on('error', reject)
    child.on('exit', (code) => (tables ? resolve(tables) : reject(new Error(`${name} ended with ${code}`))))
  })
}

const serverTitles = {
  'server-history': 'Server: preparing a history',
  'server-turn': 'Server: a turn',
  'server-stream': 'Server: a streamed turn, in CPU time',
  'server-open-runs': 'Server: many open runs',
  'server-threads': 'Server: one more message in a stored conversation',
  'server-approval': 'An approval on the server',
}

const serverNotes = {
  'server-stream': [
    'Ratios are medians over rounds in which all routes take turns, each in a process of its own.',
  ],
  'server-threads': [
    'The conversations take turns, in one process, with the memory store. No garbage collection is forced between requests. A first request loads and parses the whole conversation.',
  ],
  'server-open-runs': [
    'Each run has 20 deltas a second. A delay counts from when a delta was due. Delays are wall time: they need an otherwise idle machine.',
  ],
}

/** A server workload gives rows of its own, each with its bound and the lines of the specification that it proves. */
function serverTable(id, rows) {
  const columns = ['', 'measured', 'bound', '']
  const cells = rows.map(({ name, value, unit, bound, ok }) => [
    name,
    `${number(value)} ${unit}`,
    bound === undefined ? '' : `${bound} ${unit}`,
    ok === undefined ? '' : ok ? 'ok' : 'MISSES',
  ])
  return {
    id,
    title: serverTitles[id],
    columns,
    rows: cells,
    facts: { rows },
    notes: serverNotes[id] ?? [],
  }
}

function rowsOf(found) {
  return found.map((row) => ({
    ...row,
    ok: row.ok ?? (row.bound === undefined ? undefined : row.value <= row.bound),
  }))
}

/** The result lines that other scripts count: what was claimed, and what the server workloads prove. */
function resultRows(tables, claims) {
  const proved = tables.flatMap(({ id, facts }) =>
    id.startsWith('server') ? facts.rows.map((row) => ({ workload: id, ...row })) : [],
  )
  return [...claims.map((claim) => ({ workload: 'claims', acceptance: [], ...claim })), ...proved]
}

function verdicts(claims) {
  return claims.map(
    ({ claim, text, value, bound, ok }) =>
      `${ok ? 'ok    ' : 'MISSES'}  D${claim}  ${text}: ${value} (${bound})`,
  )
}

async function versions() {
  const names = [
    '@tanstack/ai-client',
    '@tanstack/ai',
    'ai',
    '@ai-sdk/react',
    'ag-ui-client-1',
    'react',
    'solid-js',
    'vue',
    'svelte',
    'esbuild',
    'jsdom',
  ]
  const found = await Promise.all(
    names.map(async (name) => {
      // The peers are those of the tests.
      const folder = [join(root, 'test'), root].find((one) => existsSync(join(one, 'node_modules', name)))
      if (folder === undefined) return undefined
      const file = join(folder, 'node_modules', name, 'package.json')
      const { version, name: real } = JSON.parse(await readFile(file, 'utf8'))
      return `${real} ${version}`
    }),
  )
  return [`Node ${process.versions.node}`, `V8 ${process.versions.v8}`, ...found.filter(Boolean)]
}

/** What a page pays before anything is warm: it comes first. */
const firstThings = ['cold', 'collected', 'w7']

function isFirst(id) {
  return firstThings.includes(id.split('-')[0])
}

async function page({ versions, tables, claims }) {
  const section = (wanted) => {
    const held = claims.filter(({ workload }) => isFirst(workload) === wanted)
    const lines = held.map(
      ({ claim, text, value, bound, ok }) =>
        `| ${claim} | ${text} | ${value} | ${bound} | ${ok ? 'ok' : '**misses**'} |`,
    )
    const shown = tables.filter(({ id }) => isFirst(id) === wanted)
    return `| | | measured | bound | |
| --- | --- | ---: | ---: | --- |
${lines.join('\n')}

${shown.map(markdown).join('\n')}`
  }
  const dates = [...new Set(tables.map(({ measured }) => measured))].sort()
  return `# Performance

Written by \`npm run bench\`, ${cpus().length} cores (${cpus()[0]?.model.trim()}), production mode, measured on ${dates.join(' and ')}.
${versions.join(', ')}.

The tables compare each library with two hand-written baselines that do only the measured work. The *mutable floor* changes an object and
notifies its listeners. The *immutable floor* creates a new part, parts array, message and messages array for each delta. That is the least a
store with immutable snapshots can do if it publishes every delta. \`x floor\` is the ratio to the immutable floor.

Countersign appears twice. The row "every delta published" (\`notify: 'sync'\`) notifies for every delta, like the other libraries; bounds on
time and memory apply to it unless they say "by default". The row "Countersign" is the default: deltas that arrive together are published
together. Every result is checked for correctness.

## What a first conversation costs

A page loads its library once and then has one conversation, so most of its code runs for the first time. These numbers come from fresh
processes, and from conversations that start after a forced garbage collection, which discards the code that V8 compiled for objects that no
longer exist. Numbers for a chat that has been open for a while are further below.

${section(true)}
## What a warm page costs

All libraries do the same work in the same run, in turn. Each number is the median of at least five runs after a warm-up. Each library has its
own process, as a page has one library, and no garbage collection is forced between two runs. Work of less than a second is repeated in three
processes, one after the other (pages in five), and the median counts, because speed varies between processes. The growth exponent is fitted
over the four largest sizes: 1 is linear. Work that takes a library many seconds is run once (\`1 run\`); work that would take it minutes is
skipped (\`too slow\`).

${section(false)}`
}

const options = {
  quick: { type: 'boolean', default: false },
  only: { type: 'string' },
  page: { type: 'boolean', default: false },
  json: { type: 'string' },
  'no-build': { type: 'boolean', default: false },
}

/** To see that it works takes no repetition. */
const once = { runs: 1, mostRuns: 1, warmup: 0 }

/** Runs what `args` ask for; `write` is where it prints, `scale` overrules `--quick`. */
export async function main(args, { write = console.log, scale } = {}) {
  const { values } = readArguments('bench', { args, options })
  const wanted = values.only?.split(',')
  const unknown = wanted?.filter((name) => !(name in workloads)) ?? []
  if (unknown.length > 0) {
    const known = Object.keys(workloads).join(', ')
    fail(`--only names unknown workloads: ${unknown.join(', ')}. There are ${known}.`)
  }
  if (wanted && values.page && !existsSync(keptFile))
    fail('There is no whole run that --page could put a part into: run `npm run bench` first.')
  if (!values['no-build']) await buildChanged(write)
  const size = scale ?? (values.quick ? 'quick' : 'full')
  const tables = []
  for (const id of wanted ?? Object.keys(workloads)) {
    const found = await runWorkload(id, { scale: size, ...(size === 'tiny' && once) })
    const shown = id.startsWith('server') ? [serverTable(id, rowsOf(found))] : found
    for (const table of shown) write(plain(table))
    tables.push(...shown)
  }
  const claims = judge(tables)
  if (claims.length > 0) write(verdicts(claims).join('\n'))
  const measured = new Date().toISOString().slice(0, 10)
  const found = {
    versions: await versions(),
    tables: tables.map((table) => ({ ...table, measured })),
    claims,
  }
  const isWhole = !wanted && size === 'full'
  const results = wanted && values.page ? withKept(found, await readKept()) : found
  const told = { ...results, rows: resultRows(results.tables, results.claims) }
  if (values.json) await keep(values.json, told)
  if (isWhole || values.page) {
    await keep(keptFile, told)
    await writeFile(join(root, 'docs/performance.md'), await page(told))
  }
  return told
}

const keptFile = join(root, '.countersign/bench.json')

async function readKept() {
  return JSON.parse(await readFile(keptFile, 'utf8'))
}

/** What was measured now, in the place of what an earlier run has of the same workloads. */
function withKept({ versions, tables, claims }, kept) {
  const ids = new Set(tables.map(({ id }) => id))
  const workloadsNow = new Set(claims.map(({ workload }) => workload))
  const order = Object.keys(workloads)
  const place = ({ id }) => order.findIndex((name) => id === name || id.startsWith(`${name}-`))
  return {
    versions,
    tables: [...kept.tables.filter(({ id }) => !ids.has(id)), ...tables].sort((a, b) => place(a) - place(b)),
    claims: [...claims, ...kept.claims.filter(({ workload }) => !workloadsNow.has(workload))],
  }
}

async function keep(file, results) {
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, `${JSON.stringify(results, null, 2)}\n`)
}

if (process.argv[1] === import.meta.filename) await main(given)
