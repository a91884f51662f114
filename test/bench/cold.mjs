// One thing that a page does for the first time, in a process of its own: `node --expose-gc cold.mjs <module> <task as JSON>`. The module
// is what a page imports (`import`), or a bundle that exports a contender by its name (`deltas`, `allocated`).
import { checkText } from './checks.mjs'
import { watchCollections } from './collections.mjs'
import { manyDeltas } from './scenarios.mjs'

const [url, json] = process.argv.slice(2)
const { name, contender, count } = JSON.parse(json)

const tasks = {
  /** Milliseconds until the module has been read, compiled and run. It is not the first that is asked for, for Node's loader starts slowly. */
  async import() {
    await import('./collections.mjs?again')
    const start = performance.now()
    await import(url)
    return { ms: performance.now() - start }
  },

  /** Milliseconds until the client is made and its request is sent (`ready`), and from there to the last delta (`ms`). */
  async deltas() {
    const [play, scenario] = [(await import(url))[contender], manyDeltas(count)]
    let started
    const begin = performance.now()
    const session = play.text(scenario)
    const start = () => {
      started ??= performance.now()
    }
    await session.run({ start })
    const end = performance.now()
    checkText(session.result(), scenario)
    return { ready: started - begin, ms: end - started }
  },

  /** Bytes per delta, between the request and the end; the young generation is large enough for nothing to be collected. */
  async allocated() {
    const [play, scenario] = [(await import(url))[contender], manyDeltas(count)]
    const session = play.text(scenario)
    const noCollections = await watchCollections()
    let before
    const start = () => {
      before ??= process.memoryUsage().heapUsed
    }
    await session.run({ start })
    const bytes = process.memoryUsage().heapUsed - before
    await noCollections()
    checkText(session.result(), scenario)
    return { bytes: bytes / count }
  },
}

process.send({ answer: await tasks[name]() }, () => process.exit(0))
