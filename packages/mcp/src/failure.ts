import { CountersignError } from '@countersign/core'
import { ErrorCode, type McpError } from '@modelcontextprotocol/sdk/types.js'

/** A tool as failures name it. */
export interface NamedTool {
  readonly server: string
  /** As its server calls it. */
  readonly tool: string
}

/** Whether a server answered, or its client gave up, in the terms of MCP; also by an error of another copy of the SDK. */
export function isMcpError(error: unknown): error is McpError {
  return error instanceof Error && error.name === 'McpError' && 'code' in error
}

const UNKNOWN_EFFECT = 'It may or may not have had an effect, and was not run again.'

/** A call that was sent and has no result. What the server refused was not done; about anything else nothing is known. */
export function callFailed(error: unknown, { server, tool }: NamedTool): CountersignError {
  const why = reasonOf(error)
  const failed = (message: string) => new CountersignError('tool-failed', message, { server, tool }, error)
  if (!isMcpError(error)) {
    return failed(
      `${tool} was called, and the MCP server ${server} gave no result: ${why}. ${UNKNOWN_EFFECT}`,
    )
  }
  switch (error.code) {
    case ErrorCode.ConnectionClosed:
      return failed(`The MCP server ${server} went away while ${tool} ran (${why}). ${UNKNOWN_EFFECT}`)
    case ErrorCode.RequestTimeout:
      return failed(
        `${tool} of the MCP server ${server} took too long and was cancelled (${why}). ${UNKNOWN_EFFECT}`,
      )
    default:
      return failed(`The MCP server ${server} refused ${tool}: ${why}`)
  }
}

/** The server could not be reached, so nothing ran. */
export function unreachable(error: unknown, server: string): CountersignError {
  return new CountersignError(
    'connection-failed',
    `The MCP server ${server} could not be reached, and nothing ran: ${reasonOf(error)}`,
    { server },
    error,
  )
}

/** The server describes the tool otherwise than it did, or no more; nothing ran. */
export function toolChanged({ server, tool }: NamedTool): CountersignError {
  return new CountersignError(
    'tool-failed',
    `The MCP server ${server} has changed or removed ${tool} since its tools were read, so it did not run. Build the agent again with the present \`tools\` (option \`onToolsChanged\`).`,
    { server, tool },
  )
}

/** Used after `dispose()`; nothing ran. */
export function disposed(server: string): CountersignError {
  return new CountersignError(
    'disposed',
    `The tools of the MCP server ${server} were disposed of, and nothing ran: call mcpTools() again.`,
    { server },
  )
}

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message
}
