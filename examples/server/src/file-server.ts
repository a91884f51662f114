import { join } from 'node:path'
import { type McpTools, mcpTools } from '@countersign/mcp'

/** The built MCP server of the examples. */
const fileServerScript = join(import.meta.dirname, '../../mcp-server/dist/main.js')

/**
 * Some of the demo's tools come from an MCP server, a separate process that works on the same folder. It is
 * started here, restarted if it exits, and stopped by `dispose()`.
 *
 * @throws CountersignError `connection-failed` if it cannot be started.
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
      // our own server: its annotations of these two tools are trusted, so they run without approval
      trustAnnotations: ['measure_files', 'find_duplicates'],
      // it destroys nothing and so would run without approval, but in this demo every change to a file needs one
      configure: ({ name }) =>
        name === 'append_line'
          ? { needsApproval: true, allowEdits: ['line'], message: 'This adds a line at the end of a file.' }
          : undefined,
      result: ({ content, structuredContent }) => structuredContent ?? content,
    },
  )
}
