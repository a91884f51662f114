import { ToolError } from '@countersign/server'
import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { type CallToolResult, CallToolResultSchema, type Progress } from '@modelcontextprotocol/sdk/types.js'
import { callFailed, type NamedTool } from './failure.js'
import type { OpenCall } from './open-calls.js'
import { type McpResult, readFailure, readResult } from './result.js'
import type { McpInput } from './schemas.js'

/** The longest time that timers take: the clock of the call ends it, and not the SDK's own. */
const NEVER = 2 ** 31 - 1

/**
 * One call, sent once.
 *
 * @throws ToolError `tool-failed`, saying what is known: the tool's own failure, a refusal, or that it may have had an effect.
 */
export async function callTool(
  client: Client,
  named: NamedTool,
  input: McpInput,
  { context: { signal, progress }, clock }: OpenCall,
): Promise<McpResult> {
  const result = await request()
  if (!result.isError) return readResult(result)
  throw new ToolError(readFailure(result), { data: { ...named } })

  async function request(): Promise<CallToolResult> {
    try {
      return await client.request(
        { method: 'tools/call', params: { name: named.tool, arguments: input } },
        CallToolResultSchema,
        {
          signal: AbortSignal.any([signal, clock.signal]),
          timeout: NEVER,
          onprogress: (reported) => {
            clock.begin()
            progress(plain(reported))
          },
        },
      )
    } catch (error) {
      throw callFailed(error, named)
    }
  }
}

/** How far a call has come, as the page gets it: `{ progress, total?, message? }`. */
function plain({ progress, total, message }: Progress): Progress {
  return { progress, ...(total !== undefined && { total }), ...(message !== undefined && { message }) }
}
