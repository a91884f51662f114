import { ToolError } from '@countersign/server'
import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { type CallToolResult, CallToolResultSchema, type Progress } from '@modelcontextprotocol/sdk/types.js'
import { callFailed, type NamedTool } from './failure.js'
import type { OpenCall } from './open-calls.js'
import { type McpResult, readFailure, readResult } from './result.js'
import type { McpInput } from './schemas.js'

/** The longest delay of a timer: the call's own clock must end it, not the SDK's. */
const NEVER = 2 ** 31 - 1

/**
 * Sends one call, once.
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
    // The SDK leaves a listener on its signal, which would hold the result as long as the run lasts.
    const stop = new AbortController()
    const stops = AbortSignal.any([signal, clock.signal])
    const forward = () => stop.abort(stops.reason)
    if (stops.aborted) forward()
    stops.addEventListener('abort', forward)
    try {
      return await client.request(
        { method: 'tools/call', params: { name: named.tool, arguments: input } },
        CallToolResultSchema,
        {
          signal: stop.signal,
          timeout: NEVER,
          onprogress: (reported) => {
            clock.begin()
            progress(plain(reported))
          },
        },
      )
    } catch (error) {
      throw callFailed(error, named)
    } finally {
      stops.removeEventListener('abort', forward)
    }
  }
}

/** The progress of a call, as sent to the page: `{ progress, total?, message? }`. */
function plain({ progress, total, message }: Progress): Progress {
  return { progress, ...(total !== undefined && { total }), ...(message !== undefined && { message }) }
}
