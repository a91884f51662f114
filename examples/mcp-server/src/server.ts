import { createHash } from 'node:crypto'
import { setTimeout as wait } from 'node:timers/promises'
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import type { RequestHandlerExtra } from '@modelcontextprotocol/sdk/shared/protocol.js'
import type { CallToolResult, ServerNotification, ServerRequest } from '@modelcontextprotocol/sdk/types.js'
import { z } from 'zod'
import type { Files } from './files.js'

type Extra = RequestHandlerExtra<ServerRequest, ServerNotification>

const folder = z.string().describe('Folder relative to the workspace; "" is all of it')

/** A server with the tools for one folder. `pause`: milliseconds to wait before each file of a longer job. */
export function createWorkspaceServer(files: Files, pause = 0): McpServer {
  const server = new McpServer({ name: 'example-workspace', version: '1.0.0' })
  addReadingTools(server, files, pause)
  addChangingTools(server, files, pause)
  return server
}

function addReadingTools(server: McpServer, files: Files, pause: number): void {
  const annotations = { readOnlyHint: true, openWorldHint: false }
  server.registerTool(
    'measure_files',
    {
      description: 'Counts the files of a folder, their lines and their bytes.',
      inputSchema: { folder },
      outputSchema: { files: z.number(), lines: z.number(), bytes: z.number() },
      annotations,
    },
    async ({ folder }) => {
      const contents = await Promise.all((await files.list(folder)).map(files.read))
      const lines = sum(contents.map((content) => content.toString().split('\n').length))
      return structured({ files: contents.length, lines, bytes: sum(contents.map(({ length }) => length)) })
    },
  )
  server.registerTool(
    'find_duplicates',
    { description: 'Finds files with the same content.', inputSchema: { folder }, annotations },
    async ({ folder }, extra) => {
      const byHash = new Map<string, string[]>()
      await eachFile(await files.list(folder), pause, extra, async (path) => {
        const hash = createHash('sha256')
          .update(await files.read(path))
          .digest('hex')
        byHash.set(hash, [...(byHash.get(hash) ?? []), path])
      })
      return structured({ duplicates: [...byHash.values()].filter(({ length }) => length > 1) })
    },
  )
}

function addChangingTools(server: McpServer, files: Files, pause: number): void {
  server.registerTool(
    'append_line',
    {
      description: 'Adds a line at the end of a text file.',
      inputSchema: { path: z.string().min(1), line: z.string() },
      annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: false },
    },
    async ({ path, line }) => {
      await files.append(path, `${line}\n`)
      return structured({ path })
    },
  )
  server.registerTool(
    'clear_folder',
    {
      description: 'Deletes all files of a folder for good.',
      inputSchema: { folder: folder.min(1) },
      annotations: { readOnlyHint: false, destructiveHint: true, openWorldHint: false },
    },
    async ({ folder }, extra) => {
      const deleted = await eachFile(await files.list(folder), pause, extra, files.remove)
      return structured({ deleted })
    },
  )
}

/** Handles one file after another and reports progress, until the caller cancels. Returns how many were handled. */
async function eachFile(
  paths: readonly string[],
  pause: number,
  { signal, _meta, sendNotification }: Extra,
  act: (path: string) => Promise<void>,
): Promise<number> {
  const progressToken = _meta?.progressToken
  for (const [done, path] of paths.entries()) {
    if (pause > 0) await wait(pause, undefined, { signal })
    signal.throwIfAborted()
    await act(path)
    if (progressToken === undefined) continue
    const params = { progressToken, progress: done + 1, total: paths.length, message: path }
    await sendNotification({ method: 'notifications/progress', params })
  }
  return paths.length
}

function structured(value: Record<string, unknown>): CallToolResult {
  return { structuredContent: value, content: [{ type: 'text', text: JSON.stringify(value) }] }
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0)
}
