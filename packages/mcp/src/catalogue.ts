import { isDeepStrictEqual } from 'node:util'
import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import type { Tool } from '@modelcontextprotocol/sdk/types.js'
import { listTools } from './list-tools.js'
import { type ConversionOptions, convertTools, definitionOf, type McpTool, type Run } from './tools.js'

/** The tools of one server, as of its last list. */
export interface Catalogue {
  readonly tools: readonly McpTool[]
  /** Whether the server still describes a tool as it did when the tool was created. */
  holds(tool: Tool): boolean
  /** Reads the list. If a read for the same client is still queued, returns that one. */
  read(client: Client): Promise<void>
}

export interface CatalogueOptions extends ConversionOptions {
  readonly connectTimeout: number
  readonly onToolsChanged?: ((tools: readonly McpTool[]) => void) | undefined
  readonly warn: (message: string, error?: unknown) => void
}

/** A list that was never read is empty. The first read accepts all tools or fails; a later one skips what can't be a tool. */
export function createCatalogue(options: CatalogueOptions, run: Run): Catalogue {
  const { server, connectTimeout, onToolsChanged, warn } = options
  let listed: readonly Tool[] | undefined
  let tools: readonly McpTool[] = []

  async function read(client: Client): Promise<void> {
    const now = await listTools(client, server, connectTimeout)
    const isFirst = listed === undefined
    if (isDeepStrictEqual(now, listed)) return
    tools = convertTools(now, options, run, (error) => {
      if (isFirst) throw error
      warn(`A tool of the MCP server ${server} is left out.`, error)
    })
    listed = now
    if (!isFirst) tellChanged()
  }

  function tellChanged(): void {
    try {
      onToolsChanged?.(tools)
    } catch (error) {
      warn('onToolsChanged failed.', error)
    }
  }

  return {
    get tools() {
      return tools
    },
    holds(tool) {
      const now = listed?.find(({ name }) => name === tool.name)
      return now !== undefined && isDeepStrictEqual(definitionOf(now), definitionOf(tool))
    },
    read: inTurn(read),
  }
}

/**
 * One read at a time, so that the last one started is the one that is kept. At most one is queued: a server that keeps announcing
 * changes does not cause endless reads.
 */
function inTurn(read: (client: Client) => Promise<void>): (client: Client) => Promise<void> {
  let last: Promise<unknown> = Promise.resolve()
  let waiting: { readonly client: Client; readonly reading: Promise<void> } | undefined
  return (client) => {
    if (waiting?.client === client) return waiting.reading
    const reading = last.then(() => {
      if (waiting?.reading === reading) waiting = undefined
      return read(client)
    })
    last = reading.catch(() => {})
    waiting = { client, reading }
    return reading
  }
}
