import { CountersignError } from '@countersign/core'
import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { type HttpSource, HttpTransport } from './http-transport.js'

/** A program with MCP over its standard input and output. It is started here, and ended by `dispose()`. */
export interface StdioSource {
  readonly command: string
  readonly args?: readonly string[] | undefined
  /** In addition to the few variables that the SDK passes on by default, which exclude this process's secrets. */
  readonly env?: Readonly<Record<string, string>> | undefined
  readonly cwd?: string | undefined
  /** Where the program's error output goes. Default `inherit`. */
  readonly stderr?: 'inherit' | 'ignore' | undefined
}

/** An MCP server: one to start, one to connect to, or a connected client of the official SDK. */
export type McpSource = Client | StdioSource | HttpSource

/** Whether the source is the application's own client. */
export function isClient(source: McpSource): source is Client {
  return 'callTool' in source
}

/** @throws CountersignError `invalid-option` for an invalid source. */
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
