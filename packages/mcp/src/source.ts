import { CountersignError } from '@countersign/core'
import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { type HttpSource, HttpTransport } from './http-transport.js'

/** A program that speaks MCP over its standard input and output. It is started here, and ended by `dispose()`. */
export interface StdioSource {
  readonly command: string
  readonly args?: readonly string[] | undefined
  /** Beside the few variables that the SDK passes on by default; secrets of this process are not among those. */
  readonly env?: Readonly<Record<string, string>> | undefined
  readonly cwd?: string | undefined
  /** Where the program's error output goes. Default `inherit`. */
  readonly stderr?: 'inherit' | 'ignore' | undefined
}

/** An MCP server: one to start, one to connect to, or a client of the official SDK that is connected already. */
export type McpSource = Client | StdioSource | HttpSource

/** Whether the connection is the application's own. */
export function isClient(source: McpSource): source is Client {
  return 'callTool' in source
}

/** @throws CountersignError `invalid-option` for a source that is none. */
export function transportFor(source: StdioSource | HttpSource): Transport {
  if ('command' in source) {
    const { command, args = [], env, cwd, stderr } = source
    return new StdioClientTransport({
      command,
      args: [...args],
      ...(env && { env: { ...env } }),
      ...(cwd !== undefined && { cwd }),
      ...(stderr && { stderr }),
    })
  }
  if ('url' in source && URL.canParse(source.url)) return new HttpTransport(source)
  throw new CountersignError(
    'invalid-option',
    'mcpTools needs a client of the MCP SDK, { command, args } or { url } with an absolute URL.',
    { option: 'source' },
  )
}
