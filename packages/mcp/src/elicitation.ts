import type { ElicitRequestFormParams, ElicitResult } from '@modelcontextprotocol/sdk/types.js'
import type { OpenCall, OpenCalls } from './open-calls.js'
import { quoted } from './quoted.js'
import { answerSchemaOf, type SchemaOptions } from './schemas.js'

/** An elicitation: the server's question to the user during a call, with the schema of the answer. */
export type McpElicitation = Pick<ElicitRequestFormParams, 'message' | 'requestedSchema'>

/** The user's answer: `accept` with `content`, `decline`, or `cancel` if the user did neither. */
export type McpElicitationAnswer = ElicitResult

/** Shows an elicitation to the user. `signal` is aborted when the server no longer waits. */
export type Elicit = (
  question: McpElicitation,
  options: { readonly signal: AbortSignal },
) => McpElicitationAnswer | Promise<McpElicitationAnswer>

/** How a server's elicitations are answered. */
export interface ElicitationOptions extends SchemaOptions {
  readonly server: string
  readonly calls: OpenCalls
  readonly elicit: Elicit | undefined
  readonly warn: (message: string, error?: unknown) => void
}

/** Only the user answers: without a way to ask the answer is `decline`, and if asking fails `cancel`. Meanwhile the calls' clocks stop. */
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
      `A question of the MCP server ${server} was declined: calls of several runs are open, or none is, or another user's call was left unfinished. Use one connection per user.`,
    )
    return { action: 'decline' }
  } catch (error) {
    warn(`A question of the MCP server ${server} could not be shown to the user and was cancelled.`, error)
    return { action: 'cancel' }
  } finally {
    resume()
  }
}

/** Asks in the run of the call. Only the requested properties are returned. */
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
