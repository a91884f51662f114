import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { build } from 'esbuild'
import { median } from '../measure.mjs'
import { production } from '../pages/bundle.mjs'
import { runOnce, uncollected } from '../processes.mjs'
import { number } from '../report.mjs'

/** What a page imports, from which package, and the contender that uses it. */
const libraries = {
  immutable: { names: 'immutable', from: '../contenders/floors.mjs', file: 'floors.mjs' },
  countersign: {
    names: 'ChatClient, fetchServerSentEvents',
    from: '@countersign/client',
    file: 'countersign.mjs',
  },
  tanstack: {
    names: 'ChatClient, fetchServerSentEvents',
    from: '@tanstack/ai-client',
    file: 'tanstack.mjs',
  },
  'ai-sdk': { names: 'AbstractChat, DefaultChatTransport', from: 'ai', file: 'ai-sdk.mjs' },
}

const rivals = [
  { id: 'immutable', name: 'immutable floor', library: 'immutable', exported: 'immutable' },
  {
    id: 'countersign-sync',
    name: 'Countersign, every delta published',
    library: 'countersign',
    exported: 'countersignSync',
  },
  { id: 'countersign', name: 'Countersign', library: 'countersign', exported: 'countersign' },
  {
    id: 'tanstack',
    name: 'TanStack AI (without its timers)',
    library: 'tanstack',
    exported: 'tanstack',
  },
  { id: 'ai-sdk', name: 'AI SDK', library: 'ai-sdk', exported: 'aiSdk' },
]

const scales = {
  full: { processes: 15, few: 200, many: 2000 },
  quick: { processes: 7, few: 200, many: 2000 },
  tiny: { processes: 1, few: 2, many: 20 },
}

export async function run({ scale, log }) {
  const { processes, few, many } = scales[scale]
  const folder = await mkdtemp(join(tmpdir(), 'bench-cold-'))
  try {
    const bundles = await bundleAll(folder)
    const tasks = rivals.map(({ id, name, library, exported: contender }) => {
      const { page, adapter } = bundles[library]
      const { from } = libraries[library]
      return {
        id,
        name,
        runs: {
          bundled: [page, { name: 'import' }],
          published: [from.startsWith('.') ? page : from, { name: 'import' }],
          few: [adapter, { name: 'deltas', contender, count: few }],
          many: [adapter, { name: 'deltas', contender, count: many }],
          allocated: [adapter, { name: 'allocated', contender, count: many }],
        },
      }
    })
    const found = []
    for (let n = 0; n < processes; n++) {
      for (const { id, runs } of tasks)
        for (const [key, run] of Object.entries(runs)) found.push({ id, key, ...(await runCold(...run)) })
      log(`  ${n + 1} of ${processes}`)
    }
    const measured = tasks.map(({ id, name }) => ({ contender: id, name, ...medians(found, id) }))
    return [table(measured, scales[scale])]
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Each library by itself, as a page imports it, and with the contender around it. What it loads later lies beside it. */
async function bundleAll(folder) {
  const bundle = async (name, contents) => {
    const outdir = join(folder, name)
    const stdin = { contents, resolveDir: import.meta.dirname }
    await build({
      ...production,
      stdin,
      outdir,
      minify: true,
      // The floor needs nothing later; its reader of JSON would come in a file with all that others share with such parts.
      splitting: name.startsWith('countersign'),
      entryNames: 'page',
      outExtension: { '.js': '.mjs' },
    })
    return pathToFileURL(join(outdir, 'page.mjs')).href
  }
  const found = {}
  for (const [name, { names, from, file }] of Object.entries(libraries)) {
    found[name] = {
      page: await bundle(name, `export { ${names} } from '${from}'`),
      adapter: await bundle(`${name}-contender`, `export * from '../contenders/${file}'`),
    }
  }
  return found
}

function runCold(url, task) {
  const script = join(import.meta.dirname, '../cold.mjs')
  return runOnce(script, [url, JSON.stringify(task)], task.name === 'allocated' ? uncollected : [])
}

function medians(found, id) {
  const of = (key, member) =>
    median(found.filter((one) => one.id === id && one.key === key).map((one) => one[member]))
  return {
    bundled: of('bundled', 'ms'),
    published: of('published', 'ms'),
    ready: of('many', 'ready'),
    few: of('few', 'ms'),
    many: of('many', 'ms'),
    bytes: of('allocated', 'bytes'),
  }
}

function table(measured, { few, many, processes }) {
  const floor = measured.find(({ contender }) => contender === 'immutable')
  const deltas = (count) => `first ${count.toLocaleString('en')} deltas`
  return {
    id: 'cold',
    title: 'A first conversation in a fresh process',
    columns: [
      '',
      'import, bundled',
      'import, by Node',
      'made and sent',
      deltas(few),
      deltas(many),
      'x floor',
      'allocated per delta',
    ],
    rows: measured.map((one) => [
      one.name,
      `${number(one.bundled)} ms`,
      one === floor ? '' : `${number(one.published)} ms`,
      `${number(one.ready)} ms`,
      `${number(one.few)} ms`,
      `${number(one.many)} ms`,
      number(one.many / floor.many),
      `${number(one.bytes / 1000)} KB`,
    ]),
    facts: { measured },
    notes: [
      `Each number is the median of ${processes} processes. Every library is bundled and minified as for a page, and also imported by Node from its package. "Made and sent": the client is created and its request is sent. Memory is measured over one message of ${many.toLocaleString('en')} deltas and includes what the engine keeps of the code that it compiles.`,
    ],
  }
}
