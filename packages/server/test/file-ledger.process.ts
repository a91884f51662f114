// A process of file-ledger-processes.test.ts: works through approvals in a ledger's file and logs what ran.
import { appendFileSync } from 'node:fs'
import { fileLedger } from '@countersign/server/node'
import { workThrough } from '../../testing/src/suites/shared-ledger.js'

const [path = '', log = '', ...ids] = process.argv.slice(2)
const ledger = await fileLedger(path)
if (ids.length === 0) console.log(ledger.id)
await workThrough(ledger, ids, (id) => appendFileSync(log, `${id}\n`))
ledger.close()
