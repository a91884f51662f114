// The demo's server without a page, as a process of its own for the tests beside it: `node process <folder>`.
import { createServer } from 'node:http'
import { join } from 'node:path'
import { toNodeGrantsHandler, toNodeHandler } from '@countersign/server/node'
import { demoAgent } from '../src/agent.js'
import { listen } from '../src/http.js'
import { fillOnce } from '../src/samples.js'

const [folder = ''] = process.argv.slice(2)
const workspace = join(folder, 'workspace')
await fillOnce(workspace, Date.now())
const agent = await demoAgent({ workspace, state: folder, delay: 0 })
const known = { context: () => ({ subject: 'single-user' }) }
const [chat, grants] = [toNodeHandler(agent, known), toNodeGrantsHandler(agent, known)]
const server = createServer((request, response) =>
  request.url?.startsWith('/grants') ? grants(request, response) : chat(request, response),
)
console.log(await listen(server, 0))
