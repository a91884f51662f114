import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { toNodeGrantsHandler, toNodeHandler } from '@countersign/server/node'
import { demoAgent } from './agent.js'
import { listen, pageServer } from './http.js'
import { fillOnce } from './samples.js'

const root = resolve(import.meta.dirname, '../../..')
const { PORT, DEMO_DIR, DEMO_DELAY, DEMO_PAGE = 'react' } = process.env
const page = join(root, 'examples', DEMO_PAGE, 'dist')
const workspace = resolve(DEMO_DIR ?? join(root, '.countersign/demo/workspace'))
// beside the files and not among them, where the tools could read the secret
const state = DEMO_DIR === undefined ? join(root, '.countersign/demo') : `${workspace}.countersign`

if (!existsSync(join(page, 'index.html'))) {
  console.error(
    `The page in ${DEMO_PAGE} is not built yet. \`npm start -- ${DEMO_PAGE}\` builds it and starts this server.`,
  )
  process.exit(1)
}

await fillOnce(workspace, Date.now())

const delay = DEMO_DELAY === undefined ? undefined : Number(DEMO_DELAY)
const agent = await demoAgent({ workspace, state, delay })
const options = { context: () => ({ subject: 'single-user' }) }
const api = {
  '/api/chat': toNodeHandler(agent, options),
  '/api/grants': toNodeGrantsHandler(agent, options),
}
const url = await listen(pageServer(page, api), Number(PORT ?? 5173), PORT === undefined ? 50 : 1)
console.log(`Countersign demo: ${url} (files: ${workspace})`)
