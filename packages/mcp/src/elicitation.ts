import type { ElicitRequestFormParams, ElicitResult } from '@modelcontextprotocol/sdk/types.js'
import type { OpenCall, OpenCalls } from './open-calls.js'
import { quoted } from './quoted.js'
import { answerSchemaOf, type SchemaOptions } from './schemas.js'

/** A question of the server to the person, in the middle of a call: its words and the schema of what it wants to know. */
export type McpElicitation = Pick<ElicitRequestFormParams, 'message' | 'requestedSchema'>

/** What the person said: `accept` with `content`, `decline`, or `cancel` where they said neither. */
export type McpElicitationAnswer = ElicitResult

/** Puts a server's question to the person. `signal` is aborted when the server no longer waits. */
export type Elicit = (
  question: McpElicitation,
  options: { readonly signal: AbortSignal },
) => McpElicitationAnswer | Promise<McpElicitationAnswer>

/** How a server's questions are put to somebody. */
export interface ElicitationOptions extends SchemaOptions {
  readonly server: string
  readonly calls: OpenCalls
  readonly elicit: Elicit | undefined
  readonly warn: (message: string, error?: unknown) => void
}

/** Nobody but the person answers: without a way to ask, and where asking fails, the answer is no. No call's time passes meanwhile. */
export async function answerElicitation(
  question: McpElicitation,
  signal: AbortSignal,
  options: ElicitationOptions,
): Promise<McpElicitationAnswer> {
  const { server, calls, elicit, warn } = options
  const resume = calls.pause()
  try {
    if (elicit !== undefined) return await elicit(question, { signal })
    const call = calls.asking()
    if (call !== undefined) return await askIn(call, question, signal, options)
    warn(
      `A question of the MCP server ${server} was declined: calls of several runs are open, or none is, or a call of somebody else was left unfinished. Make a connection for each person.`,
    )
    return { action: 'decline' }
  } catch (error) {
    warn(`A question of the MCP server ${server} could not be put to the person; it was cancelled.`, error)
    return { action: 'cancel' }
  } finally {
    resume()
  }
}

/** Asks in the run that the call belongs to. Only what was asked for goes back. */
async function askIn(
  { context }: OpenCall,
  { message, requestedSchema }: McpElicitation,
  signal: AbortSignal,
  options: ElicitationOptions,
): Promise<McpElicitationAnswer> {
  const reply = await context.ask({
    message: `The MCP server ${options.server} asks, and gets your answer: ${quoted(message)}`,
    answer: answerSchemaOf(requestedSchema, options),
    responseSchema: requestedSchema,
    signal,
  })
  if (reply.action !== 'accept') return { action: reply.action }
  const wanted = Object.entries(reply.content).filter(([key]) =>
    Object.hasOwn(requestedSchema.properties, key),
  )
  return { action: 'accept', content: Object.fromEntries(wanted) }
}
