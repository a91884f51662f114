// One framework's pages in a process of its own, where nothing but they has a document: `node draw.mjs <bundle> <options as JSON>`.
import { JSDOM } from 'jsdom'
import { conversation, textDeltas } from './material.mjs'
import { median } from './measure.mjs'

const [bundle, json] = process.argv.slice(2)
const { rows, deltas: count, runs, warmup } = JSON.parse(json)

const { window } = new JSDOM('<!doctype html><body></body>', {
  pretendToBeVisual: true,
  url: 'http://bench.invalid/',
})
for (const name of Object.getOwnPropertyNames(window)) {
  if (!(name in globalThis) && !name.startsWith('_'))
    Object.defineProperty(globalThis, name, { value: window[name], configurable: true, writable: true })
}
for (const name of ['window', 'document', 'navigator', 'requestAnimationFrame', 'cancelAnimationFrame']) {
  Object.defineProperty(globalThis, name, {
    value: name === 'window' ? window : window[name],
    configurable: true,
    writable: true,
  })
}
window.requestAnimationFrame = window.requestAnimationFrame.bind(window)
const { pages } = await import(bundle)

const history = conversation(rows - 2)
const deltas = textDeltas(count)
const text = deltas.join('')
const soon = () => new Promise((resolve) => setTimeout(resolve, 40))

/** Mounts a page, lets the answer come in, and says what it drew meanwhile and what that cost. */
async function play(name, notify) {
  const target = document.body.appendChild(document.createElement('main'))
  const drawn = new Map()
  let counting = false
  const page = pages[name](target, { history, deltas, notify }, (id) => {
    if (counting) drawn.set(id, (drawn.get(id) ?? 0) + 1)
  })
  await soon()
  check(name, target.querySelectorAll('article').length === history.length, 'the history is not shown')
  counting = true
  let frames = 0
  let open = true
  const onFrame = () => {
    frames++
    if (open) requestAnimationFrame(onFrame)
  }
  if (notify !== 'sync') requestAnimationFrame(onFrame)
  globalThis.gc?.()
  const before = process.cpuUsage()
  await page.play()
  const cpu = process.cpuUsage(before)
  await soon()
  open = false
  const shown = [...target.querySelectorAll('article')]
  check(
    name,
    shown.length === rows,
    `${shown.length} of ${rows} rows are shown: ${shown.map((row) => row.dataset.message)}`,
  )
  check(name, shown.at(-1).textContent === text, 'the text that is shown differs')
  const ids = new Set(history.map(({ id }) => id))
  const settled = [...drawn].filter(([id]) => ids.has(id)).reduce((sum, [, times]) => sum + times, 0)
  const others = [...drawn].filter(([id]) => !ids.has(id)).map(([, times]) => times)
  await page.unmount()
  target.remove()
  return { us: (cpu.user + cpu.system) / count, settled, streaming: Math.max(...others), frames }
}

function check(name, holds, otherwise) {
  if (!holds) throw new Error(`${name}: ${otherwise}`)
}

const names = Object.keys(pages)
const results = Object.fromEntries(names.map((name) => [name, []]))
for (let round = 0; round < warmup + runs; round++) {
  for (const name of names) {
    const result = await play(name, 'sync')
    if (round >= warmup) results[name].push(result)
  }
}
const asDefault = {}
for (const name of names.filter((one) => one.startsWith('countersign')))
  asDefault[name] = await play(name, undefined)
const summary = names.map((name) => ({
  name,
  us: median(results[name].map(({ us }) => us)),
  settled: Math.max(...results[name].map(({ settled }) => settled)),
  streaming: median(results[name].map(({ streaming }) => streaming)),
  asDefault: asDefault[name],
}))
process.send(summary, () => process.exit(0))
