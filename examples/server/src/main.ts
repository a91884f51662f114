import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { toNodeGrantsHandler, toNodeHandler, toNodePreviewHandler } from '@countersign/server/node'
import { demoAgent } from './agent.js'
import { readEnvFile } from './environment.js'
import { openFileServer } from './file-server.js'
import { listen, pageServer } from './http.js'
import { type ChosenModel, chooseModel } from './model-choice.js'
import { openModel } from './open-model.js'
import { fillOnce } from './samples.js'

const root = resolve(import.meta.dirname, '../../..')
readEnvFile(join(root, '.env'))
const { PORT, DEMO_DIR, DEMO_DELAY, DEMO_PAGE = 'react' } = process.env
const page = join(root, 'examples', DEMO_PAGE, 'dist')
const workspace = resolve(DEMO_DIR || join(root, '.countersign/demo/workspace'))
// outside the workspace, so that the tools cannot read the secret
const state = DEMO_DIR ? `${workspace}.countersign` : join(root, '.countersign/demo')

if (!existsSync(join(page, 'index.html')))
  giveUp(
    `The page in ${DEMO_PAGE} is not built yet. \`npm start -- ${DEMO_PAGE}\` builds it and starts this server.`,
  )

const { choice, because } = choose()
await fillOnce(workspace, Date.now())
const files = await openFileServer(workspace).catch((error: unknown) => {
  console.warn('The MCP server of the demo cannot be started, and its tools are left out.', error)
  return undefined
})

const model = await openModel(choice, DEMO_DELAY ? Number(DEMO_DELAY) : undefined)
const agent = await demoAgent({ workspace, state, model, tools: files?.tools })
// What a process that was killed has left open: its conversations can be continued.
await agent.recover()
const options = { context: () => ({ subject: 'single-user' }) }
const api = {
  // A reply goes on without a page for a minute: during a reload, or on the way to another browser.
  '/api/chat': toNodeHandler(agent, { ...options, goOnFor: 60_000 }),
  '/api/grants': toNodeGrantsHandler(agent, options),
  '/api/preview': toNodePreviewHandler(agent, options),
}
const server = pageServer(page, api)
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => void close())
const wanted = Number(PORT || 5173)
const url = await listen(server, wanted, 50).catch((error: unknown) =>
  giveUp(`The server cannot listen on port ${wanted} or the 49 after it: ${error}. Name another with PORT.`),
)
console.log(because)
console.log(`Files: ${workspace}`)
if (wanted !== 0 && Number(new URL(url).port) !== wanted) console.log(`Port ${wanted} is in use.`)
console.log(`Open ${url} (Ctrl+C stops it)`)

function choose(): ChosenModel {
  try {
    return chooseModel(process.env)
  } catch (error) {
    return giveUp(error instanceof Error ? error.message : String(error))
  }
}

function giveUp(message: string): never {
  console.error(message)
  process.exit(1)
}

/** Replies in progress are stopped and stored; what was said and approved is in the database. */
async function close(): Promise<void> {
  server.close()
  await agent.drain({ within: 100 })
  server.closeAllConnections()
  await files?.dispose()
  process.exit(0)
}
