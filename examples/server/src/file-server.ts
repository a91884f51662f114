import { join } from 'node:path'
import { type McpTools, mcpTools } from '@countersign/mcp'

/** The MCP server of the examples, as it is built. */
const fileServerScript = join(import.meta.dirname, '../../mcp-server/dist/main.js')

/**
 * Some of the demo's tools come from an MCP server, a process of its own that works on the same folder. It is started here, started again
 * where it went away, and ended by `dispose()`.
 *
 * @throws CountersignError `connection-failed` where it cannot be started.
 */
export function openFileServer(
  workspace: string,
  script: string = fileServerScript,
  more: readonly string[] = [],
): Promise<McpTools> {
  return mcpTools(
    { command: process.execPath, args: [script, workspace, ...more] },
    {
      server: 'files',
      // it is ours: what it says of these two is believed, and they run unasked
      trustAnnotations: ['measure_files', 'find_duplicates'],
      // it destroys nothing, and so would run unasked; but in this demo whatever changes a file is asked about
      configure: ({ name }) =>
        name === 'append_line'
          ? { needsApproval: true, allowEdits: ['line'], message: 'This adds a line at the end of a file.' }
          : undefined,
      result: ({ content, structuredContent }) => structuredContent ?? content,
    },
  )
}
