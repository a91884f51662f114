// A process of the tests beside it: works through approvals in Redis, or writes a run and never ends it.
import { appendFileSync } from 'node:fs'
import { redisLedger, redisRunLog } from '@countersign/redis'
import { createClient } from 'redis'
import { workThrough } from '../../testing/src/suites/shared-ledger.js'

const [work, url = '', prefix = '', log = '', ...ids] = process.argv.slice(2)
const client = createClient({ url }).on('error', () => {})
await client.connect()
if (work === 'approvals') {
  await workThrough(redisLedger(client, { prefix }), ids, (id) => appendFileSync(log, `${id}\n`))
  client.destroy()
} else {
  const writer = await redisRunLog(client, { prefix, lease: 2000 }).begin('run')
  await writer.append(['a', 'b'])
  console.log('written')
}
