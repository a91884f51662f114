// One workload in a process of its own: `node --expose-gc child.mjs <name> [options as JSON]`. Sends its tables to its parent; prints
// them where it has none, so that one workload can be profiled: `node --expose-gc --cpu-prof child.mjs w1`.
import { workloads } from './workloads/index.mjs'

const [name, options = '{"scale":"quick"}'] = process.argv.slice(2)
const { run } = await workloads[name]()
const log = (line) => process.stderr.write(`${line}\n`)
const tables = await run({ log, ...JSON.parse(options) })
if (process.send) process.send(tables, () => process.exit(0))
else console.log(JSON.stringify(tables, null, 2))
