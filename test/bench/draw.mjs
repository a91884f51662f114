// One page in a process of its own: `node --expose-gc draw.mjs <bundle> <page> <options as JSON>`. Answers `{ notify }` with what it drew and what that cost.
import { JSDOM } from 'jsdom'
import { conversation, textDeltas } from './material.mjs'
import { answerQuestions } from './processes.mjs'

const [bundle, name, json] = process.argv.slice(2)
const { rows, deltas: count } = JSON.parse(json)

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

/** Once what is asked for is there; after a while whether it is or not, which is then told. */
async function until(isThere) {
  for (let turns = 0; turns < 1000 && !isThere(); turns++) await soon()
}

/** Mounts a page, lets the answer come in, and says what it drew meanwhile and what that cost. */
async function play(notify) {
  const target = document.body.appendChild(document.createElement('main'))
  const drawn = new Map()
  let counting = false
  const page = pages[name](target, { history, deltas, notify }, (id) => {
    if (counting) drawn.set(id, (drawn.get(id) ?? 0) + 1)
  })
  const shownNow = () => [...target.querySelectorAll('article')]
  await soon()
  await until(() => shownNow().length === history.length)
  check(shownNow().length === history.length, 'the history is not shown')
  settle()
  counting = true
  let frames = 0
  let open = true
  const onFrame = () => {
    frames++
    if (open) requestAnimationFrame(onFrame)
  }
  if (notify !== 'sync') requestAnimationFrame(onFrame)
  const before = process.cpuUsage()
  await page.play()
  const cpu = process.cpuUsage(before)
  await soon()
  await until(() => shownNow().at(-1)?.textContent === text)
  open = false
  const shown = shownNow()
  check(
    shown.length === rows,
    `${shown.length} of ${rows} rows are shown: ${shown.map((row) => row.dataset.message)}`,
  )
  check(shown.at(-1).textContent === text, 'the text that is shown differs')
  const ids = new Set(history.map(({ id }) => id))
  const settled = [...drawn].filter(([id]) => ids.has(id)).reduce((sum, [, times]) => sum + times, 0)
  const others = [...drawn].filter(([id]) => !ids.has(id)).map(([, times]) => times)
  await page.unmount()
  target.remove()
  return { us: (cpu.user + cpu.system) / count, settled, streaming: Math.max(...others), frames }
}

/**
 * Moves what mounting has made out of the young generation, as time does on a page: else moving it would count as a cost of the deltas.
 * Nothing old is collected, which would make V8 forget what it compiled.
 */
function settle() {
  for (let times = 0; times < 2; times++) globalThis.gc({ type: 'minor' })
}

function check(holds, otherwise) {
  if (!holds) throw new Error(`${name}: ${otherwise}`)
}

answerQuestions(({ notify }) => play(notify))
