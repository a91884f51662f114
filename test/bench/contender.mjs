// One contender and one workload in a process: `node --expose-gc contender.mjs <contender> <workload>`. Answers `{ table, size }` with how long that took.
import { checkPublished } from './checks.mjs'
import { loadContender } from './contenders/index.mjs'
import { timeSession } from './measure.mjs'
import { answerQuestions } from './processes.mjs'
import { workloads } from './workloads/index.mjs'

const [id, workload] = process.argv.slice(2)
const contender = await loadContender(id)
const { tables } = await workloads[workload]()

answerQuestions(({ table, size }) => {
  const { kind, scenario, check, least, collects } = tables.find((one) => one.id === table)
  if (collects) globalThis.gc()
  return timeSession(contender[kind](scenario(size)), (result) => {
    check(result, scenario(size))
    if (least && contender.publishesAll) checkPublished(result, least(size))
  })
})
