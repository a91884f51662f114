import { fork } from 'node:child_process'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { bundlePage } from '../pages/bundle.mjs'
import { number } from '../report.mjs'

const frameworks = { React: 'react.jsx', Solid: 'solid.js', Vue: 'vue.js', Svelte: 'svelte.js' }
const scales = {
  // The engine compiles on other threads, whose time is counted as well, until it has seen the work a few times.
  full: { rows: 202, deltas: 2000, runs: 7, warmup: 3 },
  quick: { rows: 202, deltas: 2000, runs: 5, warmup: 3 },
  tiny: { rows: 6, deltas: 5, runs: 1, warmup: 0 },
}
const names = {
  floor: 'by hand, memoised rows',
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
    const bundle = await bundlePage(frameworks[framework], join(folder, `${framework}.mjs`))
    for (const result of await draw(bundle, scales[scale])) measured.push({ framework, ...result })
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
      title: `W6 ${shown - 2} memoised rows and ${deltas.toLocaleString('en')} deltas, each drawn on its own`,
      columns: [
        '',
        'CPU us per delta',
        'x floor',
        'settled rows drawn',
        'streaming row drawn',
        'by default',
        'CPU us',
      ],
      rows,
      facts: { measured },
      notes: [
        'In jsdom, production builds. By default deltas are drawn with the next frame (the last two columns); the other columns are with `notify: "sync"`, as the peers are. TanStack AI and the AG-UI client stand behind a hook by hand; the peers have React only, in the packages that are measured.',
      ],
    },
  ]
}

function draw(bundle, options) {
  return new Promise((resolve, reject) => {
    const args = [pathToFileURL(bundle).href, JSON.stringify(options)]
    const child = fork(join(import.meta.dirname, '../draw.mjs'), args, { execArgv: ['--expose-gc'] })
    let summary
    child.on('message', (message) => {
      summary = message
    })
    child.on('error', reject)
    child.on('exit', (code) =>
      summary ? resolve(summary) : reject(new Error(`the page's process ended with ${code}`)),
    )
  })
}
