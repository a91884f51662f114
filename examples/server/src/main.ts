import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { createAgent, memoryLedger } from '@countersign/server'
import { toNodeHandler } from '@countersign/server/node'
import { listen, pageServer } from './http.js'
import { demoPlanner } from './planner.js'
import { fillOnce } from './samples.js'
import { demoTools } from './tools.js'

const root = resolve(import.meta.dirname, '../../..')
const { PORT, DEMO_DIR, DEMO_DELAY, DEMO_PAGE = 'react' } = process.env
const page = join(root, 'examples', DEMO_PAGE, 'dist')
const workspace = resolve(DEMO_DIR ?? join(root, '.countersign/demo/workspace'))

if (!existsSync(join(page, 'index.html'))) {
  console.error(
    `The page in ${DEMO_PAGE} is not built yet. \`npm start -- ${DEMO_PAGE}\` builds it and starts this server.`,
  )
  process.exit(1)
}

await fillOnce(workspace, Date.now())

const agent = createAgent({
  model: demoPlanner(DEMO_DELAY === undefined ? {} : { delay: Number(DEMO_DELAY) }),
  tools: demoTools(workspace),
  approvals: { ledger: memoryLedger() },
})
const chat = toNodeHandler(agent, { context: () => ({ subject: 'single-user' }) })
const url = await listen(pageServer(page, chat), Number(PORT ?? 5173), PORT === undefined ? 50 : 1)
console.log(`Countersign demo: ${url} (files: ${workspace})`)
