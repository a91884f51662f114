import { CountersignError } from '@countersign/core'
import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { ListToolsResultSchema, type Tool } from '@modelcontextprotocol/sdk/types.js'

/** More than any real server has: an endless list must not be read forever. */
const MAX_PAGES = 100

/** The list as JSON, in characters. Reading schemas costs far more than their bytes. */
const MAX_LENGTH = 1024 * 1024

/** All tools of a server, page by page; none if it does not support tools. */
export async function listTools(client: Client, server: string, timeout: number): Promise<readonly Tool[]> {
  if (client.getServerCapabilities()?.tools === undefined) return []
  const tools: Tool[] = []
  let cursor: string | undefined
  let length = 0
  for (let page = 0; page < MAX_PAGES; page++) {
    const params = cursor === undefined ? {} : { cursor }
    const listed = await client.request({ method: 'tools/list', params }, ListToolsResultSchema, { timeout })
    length += JSON.stringify(listed.tools).length
    if (length > MAX_LENGTH) {
      throw new CountersignError(
        'connection-failed',
        `The MCP server ${server} lists tools of more than ${MAX_LENGTH} characters.`,
        { server },
      )
    }
    tools.push(...listed.tools)
    cursor = listed.nextCursor
    if (cursor === undefined) return tools
  }
  throw new CountersignError(
    'connection-failed',
    `The MCP server ${server} lists its tools on more than ${MAX_PAGES} pages.`,
    { server },
  )
}
