import { ToolError } from '@countersign/server'
import { ErrorCode, type McpError } from '@modelcontextprotocol/sdk/types.js'

/** A tool, as named in failures. */
export interface NamedTool {
  readonly server: string
  /** The server's own name for it. */
  readonly tool: string
}

/** Whether an error is an MCP error, from the server or its client; also if it comes from another copy of the SDK. */
export function isMcpError(error: unknown): error is McpError {
  return error instanceof Error && error.name === 'McpError' && 'code' in error
}

const UNKNOWN_EFFECT = 'It may or may not have had an effect, and was not run again.'

/** The error of a call that was sent and has no result. What the server refused was not done; in all other cases the effect is unknown. */
export function callFailed(error: unknown, { server, tool }: NamedTool): ToolError {
  const failed = (message: string) => new ToolError(message, { data: { server, tool }, cause: error })
  if (!isMcpError(error)) {
    return failed(`${tool} was called, and the MCP server ${server} gave no result. ${UNKNOWN_EFFECT}`)
  }
  const why = error.message
  switch (error.code) {
    case ErrorCode.ConnectionClosed:
      return failed(`The MCP server ${server} went away while ${tool} ran (${why}). ${UNKNOWN_EFFECT}`)
    case ErrorCode.RequestTimeout:
      return failed(
        `${tool} of the MCP server ${server} took too long and was cancelled (${why}). ${UNKNOWN_EFFECT}`,
      )
    case ErrorCode.ParseError:
    case ErrorCode.InvalidRequest:
    case ErrorCode.MethodNotFound:
    case ErrorCode.InvalidParams:
    case ErrorCode.UrlElicitationRequired:
      return failed(`The MCP server ${server} refused ${tool}: ${why}`)
    default:
      return failed(`The MCP server ${server} failed at ${tool} (${why}). ${UNKNOWN_EFFECT}`)
  }
}

/** The server could not be reached, so nothing ran. Details are in `cause`, not in the message, which a model and a page may see. */
export function unreachable(error: unknown, server: string): ToolError {
  const why = typeof error === 'string' ? `: ${error}` : '.'
  return new ToolError(`The MCP server ${server} could not be reached, and nothing ran${why}`, {
    code: 'connection-failed',
    data: { server },
    cause: error,
  })
}

/** The server has changed or removed the tool; nothing ran. */
export function toolChanged({ server, tool }: NamedTool): ToolError {
  return new ToolError(
    `The MCP server ${server} has changed or removed ${tool} since its tools were read, so it did not run. Build the agent again with the present \`tools\` (option \`onToolsChanged\`).`,
    { data: { server, tool } },
  )
}

/** The tools were used after `dispose()`; nothing ran. */
export function disposed(server: string): ToolError {
  return new ToolError(
    `The tools of the MCP server ${server} were disposed of, and nothing ran: call mcpTools() again.`,
    { code: 'disposed', data: { server } },
  )
}
