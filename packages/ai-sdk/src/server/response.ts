import {
  type AGUIEvent,
  CountersignError,
  isCountersignError,
  type Message,
  type RunAgentInput,
} from '@countersign/core'
import type { Agent, ChatOptions } from '@countersign/server'
import {
  checkId,
  checkOptions,
  framesOf,
  invalid,
  type LoggedEvent,
  openReplay,
  queryOf,
  randomId,
  readThread,
  rejection,
  routeRules,
  SSE_HEADERS,
  type SseFrames,
  sseBody,
  startRun,
  subjectOf,
  whileHeld,
} from '@countersign/server/http-kit'
import { type AiSdkChunk, RUN_ID_HEADER } from '../chunk.js'
import type { AiSdkMessage, AiSdkTool } from '../message.js'
import { createAiSdkWriter } from '../writer.js'
import { type LeftBehind, leftBehind } from './left-behind.js'
import { inputFor } from './purpose.js'
import { readFrom } from './request.js'
import { eventsOf as storedEvents } from './stored-events.js'
import { lackedBy, replyId } from './thread.js'

/** Headers of a UI message stream, as the AI SDK sends them. */
const HEADERS = { ...SSE_HEADERS, 'x-vercel-ai-ui-message-stream': 'v1' } as const

export interface AiSdkResponseOptions extends Pick<ChatOptions, 'keepAlive'> {
  /** The assistant message that the response continues: `continued` of the request. */
  readonly continued?: AiSdkMessage | undefined
}

export type AiSdkChatOptions = Pick<ChatOptions, 'context' | 'keepAlive' | 'prepare' | 'goOnFor'>

/**
 * Responds to a chat request of an AI SDK client (`useChat`, `DefaultChatTransport`) with its run as a UI message stream, for servers with
 * the Fetch API. `addToolApprovalResponse` with `sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses`
 * answers our requests; each answer is verified like any other. Such a client can't edit arguments: a call whose input it changed
 * is refused.
 *
 * If the agent has `threads`, the server keeps the conversation under the chat's id, takes from the request only what is new, and keeps edited
 * messages and regenerated replies as versions. A request that continues a conversation which the server does not have is refused with
 * `thread-unknown` (404); with `acceptUploads`, the page's copy of it is stored first. With `goOnFor`, a client that reloads can resume its
 * run: {@link resumeAiSdkChat}.
 *
 * @throws CountersignError `invalid-option`
 *
 * @example export const POST = (request) => handleAiSdkChat(agent, request, { context: { subject: await userId(request) } })
 */
export async function handleAiSdkChat(
  agent: Agent,
  request: Request,
  given: AiSdkChatOptions = {},
): Promise<Response> {
  checkOptions('handleAiSdkChat', given, routeRules)
  const { keepAlive, ...options } = given
  try {
    const { context } = options
    const owner = subjectOf(context)?.id
    const asked = await readFrom(request, { owner, limits: agent.limits })
    const { continued, page } = asked
    const { input, purpose } = await whileHeld(owner, asked, agent, () => inputFor(agent, asked, context))
    const lacked = (stored: readonly Message[]) => {
      const left = leftBehind(purpose, asked, stored)
      if (left) throw new Overtaken(left)
      return lackedBy(continued, purpose.said, stored)
    }
    const isElsewhere = continued !== undefined && !(page.isReplyLast && page.later === undefined)
    // Without threads, a reply that the page can't show would be lost.
    const maxSteps = isElsewhere && !agent.threads ? 0 : undefined
    const start = (input: RunAgentInput) =>
      startRun(agent, input, options, request.signal, { lacked, maxSteps })
    const run = await start(input).catch((error: unknown) => {
      if (!isCountersignError(error) || error.data.upload !== true) throw error
      return start({ ...asked.input, forwardedProps: { countersign: { upload: true } } })
    })
    const messageId = agent.threads ? replyId(run.messages) : undefined
    const { runId } = run.input
    // The rest of a message that the page has in part goes into the same step: an SDK client sends the answers of the last step alone.
    const whole = new Set(run.messages)
    const step = run.again.find((message) => !whole.has(message))?.id
    const own = { continued, keepAlive, messageId, runId, before: run.again, step, limits: agent.limits }
    const select = isElsewhere ? onlyResults(agent.threads ? OVERTAKEN : ONLY_CARRIED_OUT) : undefined
    return toResponse(eventsOf(run.events, select), own, request)
  } catch (error) {
    if (error instanceof Overtaken) {
      const { left } = error
      return toResponse(eventsLeft(left), { ...left, keepAlive, before: left.results }, request)
    }
    const { body, ...init } = rejection(agent, error, request.signal)
    return new Response(body, init)
  }
}

const OVERTAKEN = 'The conversation has messages that this page goes on without. Load it again.'
const ONLY_CARRIED_OUT =
  'This request could only carry out answers to an earlier reply. If the last message has no reply, send it again.'

/** Leaves the start of a run that must not begin. */
class Overtaken extends CountersignError {
  constructor(readonly left: LeftBehind) {
    super('invalid-request', OVERTAKEN)
  }
}

/** The events of a request for which nothing runs. */
async function* eventsLeft({ isUpToDate }: LeftBehind): AsyncGenerator<AGUIEvent> {
  yield { type: 'RUN_STARTED', threadId: '', runId: '' }
  yield isUpToDate
    ? { type: 'RUN_FINISHED', threadId: '', runId: '', outcome: { type: 'success' } }
    : { type: 'RUN_ERROR', message: OVERTAKEN }
}

/**
 * Selects from a run that answers the last message of the page, while the request names the reply before it. The SDK would put everything
 * into that earlier reply, and would not send answers that are given there.
 */
function onlyResults(ending: string): (event: AGUIEvent) => AGUIEvent | undefined {
  return (event) => {
    if (event.type === 'RUN_FINISHED') return { type: 'RUN_ERROR', message: ending }
    const isKept =
      event.type === 'TOOL_CALL_RESULT' ||
      event.type === 'RUN_ERROR' ||
      (event.type === 'CUSTOM' && event.name === 'approval-refused')
    return isKept ? event : undefined
  }
}

/** The logged events of a run, one by one. */
function eventsOf(
  batches: AsyncIterator<readonly LoggedEvent[]>,
  select: (event: AGUIEvent) => AGUIEvent | undefined = (event) => event,
): AsyncIterable<AGUIEvent> {
  let batch: readonly LoggedEvent[] = []
  let at = 0
  // Not a generator: a waiting one does not react to `return`.
  const iterator: AsyncIterableIterator<AGUIEvent> = {
    async next() {
      for (let event = batch[at++]; ; event = batch[at++]) {
        if (event !== undefined) {
          const value = select(JSON.parse(event.data))
          if (value) return { value }
          continue
        }
        const { done, value } = await batches.next()
        if (done) return { done, value: undefined }
        batch = value
        at = 0
      }
    },
    async return() {
      await batches.return?.()
      return { done: true, value: undefined }
    },
    [Symbol.asyncIterator]: () => iterator,
  }
  return iterator
}

/**
 * Responds to the GET by which an AI SDK client (`useChat({ id, resume: true })`, `resumeStream()`) resumes the open run of its chat, from a
 * URL that ends in `/<chat id>/stream`: with the reply from its beginning, as such clients expect it. 204 if nothing runs. Needs an agent
 * with `threads`, and `context.subject`.
 *
 * With `runId` and `after` in the query, as our `aiSdk({ resume: 'rest' })` sends them, it responds with the rest of that run. `before`: how many
 * chunks the client was sent ahead of the run's own; 204 if it lacks some of these.
 *
 * @throws CountersignError `invalid-option`
 *
 * @example export const GET = (request) => resumeAiSdkChat(agent, request, { context: { subject: await userId(request) } })
 */
export async function resumeAiSdkChat(
  agent: Agent,
  request: Request,
  given: Pick<AiSdkChatOptions, 'context' | 'keepAlive'> = {},
): Promise<Response> {
  checkOptions('resumeAiSdkChat', given, routeRules)
  const { context, keepAlive } = given
  let rest: Awaited<ReturnType<typeof openReplay>>
  try {
    if (request.method !== 'GET') throw invalid('Send a GET request.', 405)
    const query = queryOf(request.url)
    const threadId = chatIdIn(request.url, agent)
    const count = (name: string) => /^\d{1,9}$/.exec(query.get(name) ?? '')?.[0]
    const after = count('after')
    const skip = Number(after) - Number(count('before') ?? 0)
    // The client lacks some of what was not the run's, or does not know the run: it is sent that with its next request.
    if (skip < 0 || (after !== undefined && !query.has('runId'))) return new Response(null, nothingToResume)
    const key = { owner: context?.subject ?? null, threadId }
    const thread = agent.threads && (await readThread(agent.threads, key))
    const { messages = [], run } = thread ?? {}
    const runId = query.get('runId') ?? (run?.lapsed ? undefined : run?.runId)
    const wanted =
      runId === undefined ? undefined : { threadId, runId: checkId('runId', runId, agent.limits), after: 0 }
    const own = new Set(run?.messageIds)
    const reply = messages.slice(messages.findLastIndex(({ role }) => role === 'user') + 1)
    const before = after === undefined ? reply.filter(({ id }) => !own.has(id)) : []
    rest = wanted && (await openReplay(agent, subjectOf(context), wanted, request.signal, before))
    if (rest === undefined || runId === undefined) return new Response(null, nothingToResume)
    const messageId = replyId(messages)
    const options =
      after === undefined
        ? { keepAlive, messageId, runId, before }
        : { keepAlive, continued: withCallsOf(reply, messageId), runId, skip }
    return toResponse(eventsOf(rest), { ...options, limits: agent.limits }, request)
  } catch (error) {
    void rest?.return?.()
    const { body, ...init } = rejection(agent, error, request.signal, 'GET')
    return new Response(body, init)
  }
}

const nothingToResume = { status: 204, headers: { 'cache-control': 'no-store' } }

/** The message of a client that has these calls: their results are for it. */
function withCallsOf(messages: readonly Message[], id: string): AiSdkMessage {
  const calls = messages.flatMap((message) => (message.role === 'assistant' ? (message.toolCalls ?? []) : []))
  const parts = calls.map(
    (call): AiSdkTool => ({
      type: `tool-${call.function.name}`,
      toolCallId: call.id,
      state: 'input-available',
    }),
  )
  return { id, role: 'assistant', parts }
}

function chatIdIn(url: string, { limits }: Agent): string {
  const [, encoded] = /\/([^/?#]+)\/stream\/?(?:[?#]|$)/.exec(url) ?? []
  let chatId: unknown
  try {
    chatId = encoded && decodeURIComponent(encoded)
  } catch {}
  return checkId('The chat id in the URL (/<chat id>/stream)', chatId, limits)
}

/**
 * Converts a run to the response for an AI SDK client, if you run the agent yourself. A client that disconnects stops the run.
 *
 * @example const { input, continued } = await readAiSdkRequest(request); return toAiSdkResponse(agent.run(input), { continued })
 */
export function toAiSdkResponse(
  events: AsyncIterable<AGUIEvent>,
  options: AiSdkResponseOptions = {},
  gone?: AbortSignal,
): Response {
  checkOptions('toAiSdkResponse', options, { continued: routeRules.context, keepAlive: routeRules.keepAlive })
  return toResponse(events, options, gone && { signal: gone })
}

interface StreamOptions extends AiSdkResponseOptions {
  /** The id of the message that the stream builds, if it continues none. Default: a random one. */
  readonly messageId?: string | undefined
  /** Named in a header, so that our own client can ask for the rest of the run. */
  readonly runId?: string | undefined
  /** What the reply had before the run, and its reader lacks. */
  readonly before?: readonly Message[] | undefined
  /** The message of `before` whose step the reader has in part. */
  readonly step?: string | undefined
  /** How many chunks of the run are left out: the client has them. */
  readonly skip?: number | undefined
  /** Default: those of an agent without any. */
  readonly limits?: Agent['limits'] | undefined
}

function toResponse(
  events: AsyncIterable<AGUIEvent>,
  options: StreamOptions,
  request: { readonly signal: AbortSignal } | undefined,
): Response {
  const { frames, sent } = chunkFrames(events[Symbol.asyncIterator](), options)
  const { runId, limits } = options
  // The id is whatever its client made it, and a header takes only Latin-1.
  const rest = runId !== undefined && `${encodeURIComponent(runId)}${sent > 0 ? `&before=${sent}` : ''}`
  const headers = { ...HEADERS, ...(rest && { [RUN_ID_HEADER]: rest }) }
  return new Response(sseBody(frames, request, limits), { headers })
}

/** `sent`: how many chunks come before those of the run. */
function chunkFrames(
  events: AsyncIterator<AGUIEvent>,
  { continued, keepAlive, messageId = randomId('msg_'), before = [], step, skip = 0 }: StreamOptions,
): { readonly frames: SseFrames; readonly sent: number } {
  const write = createAiSdkWriter({ messageId, continued, step })
  const frameOf = (chunks: readonly AiSdkChunk[]) =>
    chunks.map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`).join('')
  const start: AGUIEvent = { type: 'RUN_STARTED', threadId: '', runId: '' }
  const early = before.length > 0 ? [start, ...storedEvents(before)].flatMap(write) : []
  // The run ends the step that is open then.
  const open = step !== undefined || early.some(({ type }) => type === 'start-step') ? 1 : 0
  let first = frameOf(early)
  let left = skip
  const frame = (event: AGUIEvent) => {
    const chunks = write(event)
    const text = first + frameOf(chunks.slice(left))
    left = Math.max(0, left - chunks.length)
    first = ''
    return text
  }
  return {
    frames: framesOf(events, frame, keepAlive, 'data: [DONE]\n\n'),
    sent: early.length + open,
  }
}
