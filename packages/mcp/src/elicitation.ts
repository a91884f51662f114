import type { ElicitRequestFormParams, ElicitResult } from '@modelcontextprotocol/sdk/types.js'

/** A question of the server to the person, in the middle of a call: its words and the schema of what it wants to know. */
export type McpElicitation = Pick<ElicitRequestFormParams, 'message' | 'requestedSchema'>

/** What the person said: `accept` with `content`, `decline`, or `cancel` where they said neither. */
export type McpElicitationAnswer = ElicitResult

/** Puts a server's question to the person. `signal` is aborted when the server no longer waits. */
export type Elicit = (
  question: McpElicitation,
  options: { readonly signal: AbortSignal },
) => McpElicitationAnswer | Promise<McpElicitationAnswer>

/** Nobody but the person answers: without a way to ask, and where asking fails, the answer is no. */
export async function answerElicitation(
  question: McpElicitation,
  signal: AbortSignal,
  elicit: Elicit | undefined,
  warn: (message: string, error?: unknown) => void,
): Promise<McpElicitationAnswer> {
  if (elicit === undefined) return { action: 'decline' }
  try {
    return await elicit(question, { signal })
  } catch (error) {
    warn('A question of an MCP server could not be put to the person; it was cancelled.', error)
    return { action: 'cancel' }
  }
}
