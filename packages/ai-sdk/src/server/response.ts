import type { AGUIEvent } from '@countersign/core'
import type { Agent, ChatOptions } from '@countersign/server'
import {
  framesOf,
  KEEP_ALIVE_MS,
  randomId,
  rejection,
  SSE_HEADERS,
  type SseFrames,
  sseBody,
  subjectOf,
  takeRun,
} from '@countersign/server/http-kit'
import type { AiSdkMessage } from '../message.js'
import { createAiSdkWriter } from '../writer.js'
import { readFrom } from './request.js'

/** Headers of a UI message stream, as the AI SDK sends them. */
const HEADERS = { ...SSE_HEADERS, 'x-vercel-ai-ui-message-stream': 'v1' } as const

export interface AiSdkResponseOptions extends Pick<ChatOptions, 'keepAlive'> {
  /** The assistant message that the response continues: `continued` of the request. */
  readonly continued?: AiSdkMessage | undefined
}

export type AiSdkChatOptions = Pick<ChatOptions, 'context' | 'keepAlive' | 'prepare'>

/**
 * Responds to a chat request of an AI SDK client (`useChat`, `DefaultChatTransport`) with its run as a UI message stream, for servers with
 * the Fetch API. `addToolApprovalResponse` with `sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses`
 * answers our requests; each answer is verified like any other. Such a client can't edit arguments: a call whose input it changed
 * is refused.
 *
 * @example export const POST = (request) => handleAiSdkChat(agent, request, { context: { subject: await userId(request) } })
 */
export async function handleAiSdkChat(
  agent: Agent,
  request: Request,
  { context, keepAlive, prepare }: AiSdkChatOptions = {},
): Promise<Response> {
  try {
    const owner = subjectOf(context)?.id
    const { input, continued } = await readFrom(request, { owner, limits: agent.limits })
    const held = takeRun(owner, agent.limits, input)
    try {
      const run = agent.run((await prepare?.(input)) ?? input, { context })
      return toAiSdkResponse(whileHeld(run, held.release), { continued, keepAlive }, request.signal)
    } catch (error) {
      held.release()
      throw error
    }
  } catch (error) {
    const { body, ...init } = rejection(error)
    return new Response(body, init)
  }
}

/** The same events; calls `release` once, when they end or their reader leaves. */
function whileHeld(
  events: AsyncIterableIterator<AGUIEvent>,
  release: () => void,
): AsyncIterableIterator<AGUIEvent> {
  const held: AsyncIterableIterator<AGUIEvent> = {
    async next() {
      try {
        const result = await events.next()
        if (result.done) release()
        return result
      } catch (error) {
        release()
        throw error
      }
    },
    async return() {
      release()
      await events.return?.()
      return { done: true, value: undefined }
    },
    [Symbol.asyncIterator]: () => held,
  }
  return held
}

/**
 * Converts a run to the response for an AI SDK client, if you run the agent yourself. A client that disconnects stops the run.
 *
 * @example const { input, continued } = await readAiSdkRequest(request); return toAiSdkResponse(agent.run(input), { continued })
 */
export function toAiSdkResponse(
  events: AsyncIterable<AGUIEvent>,
  { continued, keepAlive = KEEP_ALIVE_MS }: AiSdkResponseOptions = {},
  gone?: AbortSignal,
): Response {
  const frames = chunkFrames(events, continued, keepAlive)
  if (gone?.aborted) frames.cancel()
  else gone?.addEventListener('abort', frames.cancel, { once: true })
  return new Response(sseBody(frames), { headers: HEADERS })
}

function chunkFrames(
  events: AsyncIterable<AGUIEvent>,
  continued: AiSdkMessage | undefined,
  keepAlive: number,
): SseFrames {
  const write = createAiSdkWriter({ messageId: randomId('msg_'), continued })
  const frame = (event: AGUIEvent) =>
    write(event)
      .map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`)
      .join('')
  return framesOf(events[Symbol.asyncIterator](), frame, keepAlive, 'data: [DONE]\n\n')
}
