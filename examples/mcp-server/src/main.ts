import { parseArgs } from 'node:util'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { openFiles } from './files.js'
import { serveHttp } from './http.js'
import { createWorkspaceServer } from './server.js'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { http: { type: 'string' }, pause: { type: 'string', default: '0' } },
})
const [folder] = positionals
if (folder === undefined) {
  console.error('Usage: main.js FOLDER [--http PORT] [--pause MS]')
  process.exit(1)
}

const files = await openFiles(folder)
const create = () => createWorkspaceServer(files, Number(values.pause))
if (values.http === undefined) await create().connect(new StdioServerTransport())
else console.log(`http://127.0.0.1:${await serveHttp(create, Number(values.http))}/mcp`)
