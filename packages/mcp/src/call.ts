import { CountersignError, type ToolContext } from '@countersign/core'
import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { type CallToolResult, CallToolResultSchema, type Progress } from '@modelcontextprotocol/sdk/types.js'
import { callFailed, type NamedTool } from './failure.js'
import { type McpResult, readFailure, readResult } from './result.js'
import type { McpInput } from './schemas.js'

/** How long a call may take, in milliseconds. */
export interface CallLimits {
  /** Without a sign of life: each progress notification begins it anew. */
  readonly timeout: number
  /** In all. */
  readonly maxTimeout: number | undefined
}

/**
 * One call, sent once.
 *
 * @throws CountersignError `tool-failed`, saying what is known: the tool's own failure, a refusal, or that it may have had an effect.
 */
export async function callTool(
  client: Client,
  named: NamedTool,
  input: McpInput,
  { signal, progress }: Pick<ToolContext, 'signal' | 'progress'>,
  { timeout, maxTimeout }: CallLimits,
): Promise<McpResult> {
  const result = await request()
  if (!result.isError) return readResult(result)
  throw new CountersignError('tool-failed', readFailure(result), { ...named })

  async function request(): Promise<CallToolResult> {
    try {
      return await client.request(
        { method: 'tools/call', params: { name: named.tool, arguments: input } },
        CallToolResultSchema,
        {
          signal,
          timeout,
          resetTimeoutOnProgress: true,
          onprogress: (reported) => progress(plain(reported)),
          ...(maxTimeout !== undefined && { maxTotalTimeout: maxTimeout }),
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
