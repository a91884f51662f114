import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { median } from '../measure.mjs'
import { bundlePage } from '../pages/bundle.mjs'
import { startProcess } from '../processes.mjs'
import { number } from '../report.mjs'

const own = ['floor', 'countersign']
const frameworks = {
  React: {
    file: 'react.jsx',
    pages: ['floor', 'countersign', 'countersign-by-message', 'ai-sdk', 'tanstack', 'ag-ui'],
  },
  Solid: { file: 'solid.js', pages: own },
  Vue: { file: 'vue.js', pages: own },
  Svelte: { file: 'svelte.js', pages: own },
}
const scales = {
  // CPU time counts the engine's other threads too, which compile and collect: it takes many rounds until they have done with that.
  // What a framework draws differs by a fifth from one process to the next.
  full: { rows: 202, deltas: 2000, runs: 11, warmup: 12, processes: 5 },
  quick: { rows: 202, deltas: 2000, runs: 9, warmup: 6, processes: 1 },
  tiny: { rows: 6, deltas: 5, runs: 1, warmup: 0, processes: 1 },
}
const names = {
  floor: 'hand-written, memoized rows',
  countersign: 'Countersign',
  'countersign-by-message': 'Countersign, useMessage in each row',
  'ai-sdk': 'AI SDK, useChat',
  tanstack: 'TanStack AI, as shipped',
  'ag-ui': 'AG-UI client',
}

export async function run({ scale, log, only = Object.keys(frameworks) }) {
  const folder = await mkdtemp(join(tmpdir(), 'bench-pages-'))
  const measured = []
  for (const framework of only) {
    const bundle = await bundlePage(frameworks[framework].file, join(folder, `${framework}.mjs`))
    const results = await drawInProcesses(framework, bundle, scales[scale])
    for (const result of results) measured.push({ framework, ...result })
    log(`  ${framework}`)
  }
  const floorOf = (framework) =>
    measured.find((one) => one.framework === framework && one.name === 'floor').us
  const rows = measured.map(({ framework, name, us, settled, streaming, asDefault }) => [
    `${framework}: ${names[name]}`,
    number(us),
    number(us / floorOf(framework)),
    String(settled),
    String(streaming),
    asDefault ? `${asDefault.streaming} in ${asDefault.frames} frames` : '',
    asDefault ? number(asDefault.us) : '',
  ])
  const { rows: shown, deltas } = scales[scale]
  return [
    {
      id: 'w6',
      title: `W6 ${shown - 2} memoized rows and ${deltas.toLocaleString('en')} deltas, each rendered separately`,
      columns: [
        '',
        'CPU us per delta',
        'x floor',
        'settled rows rendered',
        'streaming row rendered',
        'by default',
        'CPU us',
      ],
      rows,
      facts: { measured },
      notes: [
        'In jsdom, production builds. By default, deltas are rendered with the next frame (the last two columns); the other columns use `notify: "sync"`, like the other libraries. TanStack AI and the AG-UI client use a hand-written hook; the measured packages of the other libraries support only React. Before the deltas arrive, two minor garbage collections move the objects created by mounting out of the young generation. A library that takes more than twice as long as the floor is measured in one process only.',
      ],
    },
  ]
}

/** A framework's pages, each in several processes one after the other: the median of them, and the most that any of them drew. */
async function drawInProcesses(framework, bundle, { processes, ...options }) {
  const { pages } = frameworks[framework]
  const first = await draw(bundle, options, pages)
  // Who takes more than twice as long as the floor does not do so by the luck of a process.
  const quick = first.filter(({ us }) => us <= 2 * first[0].us).map(({ name }) => name)
  const passes = [first]
  while (passes.length < processes) passes.push(await draw(bundle, options, quick))
  return first.map((one) => {
    const all = passes.flatMap((results) => results.filter(({ name }) => name === one.name))
    return {
      ...one,
      us: median(all.map(({ us }) => us)),
      settled: Math.max(...all.map(({ settled }) => settled)),
      streaming: Math.max(...all.map(({ streaming }) => streaming)),
    }
  })
}

/** Lets a framework's pages take turns, each in a process of its own. */
async function draw(bundle, { runs, warmup, ...options }, names) {
  const script = join(import.meta.dirname, '../draw.mjs')
  const pages = names.map((name) => ({
    name,
    results: [],
    player: startProcess(
      script,
      [pathToFileURL(bundle).href, name, JSON.stringify(options)],
      ['--expose-gc'],
    ),
  }))
  try {
    for (let round = 0; round < warmup + runs; round++) {
      for (const { results, player } of pages) {
        const result = await player.ask({ notify: 'sync' })
        if (round >= warmup) results.push(result)
      }
    }
    const summary = []
    for (const { name, results, player } of pages) {
      summary.push({
        name,
        us: median(results.map(({ us }) => us)),
        settled: Math.max(...results.map(({ settled }) => settled)),
        streaming: median(results.map(({ streaming }) => streaming)),
        ...(name.startsWith('countersign') && { asDefault: await player.ask({}) }),
      })
    }
    return summary
  } finally {
    for (const { player } of pages) player.stop()
  }
}
