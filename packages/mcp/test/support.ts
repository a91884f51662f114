import { spawn } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { InMemoryTransport } from '@modelcontextprotocol/sdk/inMemory.js'
import type { Server } from '@modelcontextprotocol/sdk/server/index.js'
import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { afterAll, expect, onTestFinished } from 'vitest'
import { bundleForNode } from '../../../scripts/bundle.mjs'

const root = join(import.meta.dirname, '..', '..', '..')

export const afterwards = (clean: () => unknown) => onTestFinished(async () => void (await clean()))

/** A script in TypeScript as one that Node runs, for all tests of a file. */
export async function scriptOf(entry: string): Promise<string> {
  const { file, remove } = await bundleForNode(join(root, entry), join(import.meta.dirname, '..'))
  afterAll(remove)
  return file
}

/** A folder `old` with three files, two of them alike, and `todo.txt`. */
export async function workspace(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'countersign-mcp-'))
  afterwards(() => rm(folder, { recursive: true, force: true }))
  await mkdir(join(folder, 'old'))
  for (const name of ['a', 'b', 'c']) {
    await writeFile(join(folder, 'old', `${name}.txt`), name === 'c' ? 'other\n' : 'same\n')
  }
  await writeFile(join(folder, 'todo.txt'), 'one\n')
  return folder
}

export interface Started {
  /** What `mcpTools` connects to. */
  readonly source: { readonly command: string; readonly args: string[] } | { readonly url: string }
  /** As a crash. */
  kill(): Promise<void>
  /** Where a person has to start it again. */
  restart(): Promise<void>
}

/** Writes down which process it is, so that a test can end a server that the SDK has started. */
const tellPid =
  'data:text/javascript,import{writeFileSync}from"node:fs";writeFileSync(process.argv.at(-1),String(process.pid))'

export async function overStdio(script: string, folder: string, ...more: string[]): Promise<Started> {
  const pidFile = join(await workspace(), 'pid')
  const args = ['--import', tellPid, script, folder, ...more, '--', pidFile]
  const pid = async () => Number(await readFile(pidFile, 'utf8'))
  return {
    source: { command: process.execPath, args },
    kill: async () => void process.kill(await pid(), 'SIGKILL'),
    restart: async () => {},
  }
}

export async function overHttp(script: string, folder: string, ...more: string[]): Promise<Started> {
  let port = '0'
  const start = async () => {
    const args = [script, folder, ...more, '--http', port]
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    afterwards(() => child.kill('SIGKILL'))
    const url = await new Promise<string>((resolve, reject) => {
      child.stdout.once('data', (data: Buffer) => resolve(data.toString().trim()))
      child.once('exit', () => reject(new Error('the server ended')))
    })
    port = new URL(url).port
    return { child, url }
  }
  let running = await start()
  return {
    source: { url: running.url },
    kill: async () => {
      const ended = new Promise((resolve) => running.child.once('exit', resolve))
      running.child.kill('SIGKILL')
      await ended
    },
    restart: async () => {
      running = await start()
    },
  }
}

/** A client of the application's own, connected to a server in this process. */
export async function connected(server: McpServer | Server): Promise<Client> {
  const [mine, its] = InMemoryTransport.createLinkedPair()
  await server.connect(its)
  const client = new Client({ name: 'test', version: '1' })
  await client.connect(mine)
  afterwards(() => client.close())
  return client
}

/** A client of the SDK, without anything of ours. */
export async function client(source: Started['source']): Promise<Client> {
  const plain = new Client({ name: 'test', version: '1' })
  // the SDK's own types of its transports do not fit one another where absent members may not be undefined
  const transport: unknown =
    'url' in source
      ? new StreamableHTTPClientTransport(new URL(source.url))
      : new StdioClientTransport({ command: source.command, args: source.args })
  await plain.connect(transport as Transport)
  afterwards(() => plain.close())
  return plain
}

/** What a call came to, thrown or not. */
export async function errorOf(promise: Promise<unknown>): Promise<{ code?: unknown; message: string }> {
  try {
    await promise
  } catch (error) {
    if (error instanceof Error) return error
  }
  return expect.fail('nothing was thrown')
}
