import { isRecord, type ResumeEntry } from '@countersign/core'
import type { Delivery } from '../channel/answer-queue.js'
import { checkOptions } from '../encoding/check-options.js'
import type { FullLimits } from '../limits.js'
import type { Agent } from '../run/agent.js'
import type { RunContext } from '../scope/run-context.js'
import { type Holder, runKey } from '../scope/run-key.js'
import { subjectOf } from './holder.js'
import {
  type Arrival,
  checkRequest,
  type Rejection,
  readText,
  rejection,
  rejectionOf,
  tooManyBodies,
} from './http.js'
import { checkOrigin, type OriginRule } from './origin.js'
import { bytesHeldBy, takeArriving } from './quota.js'
import { routeRules } from './route-rules.js'
import { invalid, parseBody, readParsedInput } from './run-input.js'

export interface AnswerOptions extends OriginRule {
  /** What the application knows about this request: the same `subject` as for the run. Passed to `approvals.confirm`. */
  readonly context?: RunContext | undefined
}

/** Answers for an open run, as sent in a request or a frame. */
interface LiveAnswers {
  readonly threadId: string
  readonly runId: string
  readonly resume: readonly ResumeEntry[]
}

/**
 * Reads answers from a parsed body, by the rules of a chat request.
 *
 * @throws CountersignError `invalid-request`, `request-too-large`; `data.status` is the HTTP status.
 */
export function readLiveAnswers(body: unknown, limits: FullLimits): LiveAnswers {
  if (!isRecord(body)) throw invalid('The body must be an object: { threadId, runId, resume }.')
  const { threadId, runId, resume } = body
  const given = { threadId, runId, resume, messages: [], tools: [], context: [] }
  const input = readParsedInput(given, limits)
  if (input.resume === undefined || input.resume.length === 0) throw invalid('resume must hold an answer.')
  return { threadId: input.threadId, runId: input.runId, resume: input.resume }
}

/** Delivers answers to this holder's open run, in whichever process it is. */
export function deliverAnswers(
  agent: Agent,
  holder: Holder,
  { threadId, runId, resume }: LiveAnswers,
  context: RunContext | undefined,
): Promise<Delivery> {
  return agent.answerChannel.deliver(runKey(holder, threadId, runId), resume, context)
}

/** The HTTP request line and headers that are checked. */
interface PostHead {
  readonly method: string | undefined
  readonly type: string | null | undefined
  readonly length: string | null | undefined
  readonly origin: string | null | undefined
  readonly host: string | null | undefined
}

/** How a POST of a page is served, once its head is known. */
export type ServePost = (
  agent: Agent,
  head: PostHead,
  readBody: (arrival: Arrival) => Promise<unknown>,
  options: AnswerOptions,
) => Promise<Rejection>

/** Delivers answers to the user's open run. 200 once the run has them, 409 if it took none, 429 if too many wait, 503 if unknown. */
export const answerRequest: ServePost = async (agent, head, readBody, options) => {
  try {
    checkOrigin(head.origin, head.host, options)
    const { limits } = agent
    checkRequest(head.method, head.type, head.length, limits)
    const holder = subjectOf(options.context)
    if (holder === undefined)
      throw invalid('A live answer needs a user, but context.subject is not set.', 403)
    const answers = readLiveAnswers(await readBody({ owner: holder.id, limits }), limits)
    const held = takeArriving(holder.id, bytesHeldBy(answers), limits)
    if (held === undefined) throw tooManyBodies()
    const delivery = await deliverAnswers(agent, holder, answers, options.context).finally(held.release)
    if (delivery.status === 'refused')
      return rejectionOf(delivery.code === 'too-many-answers' ? 429 : 409, delivery)
    return replyOf(delivery)
  } catch (error) {
    return rejection(agent, error)
  }
}

/** A reply with JSON. */
export function replyOf(body: unknown): Rejection {
  const headers = { 'content-type': 'application/json', 'cache-control': 'no-store' }
  return { status: 200, body: JSON.stringify(body), headers }
}

/**
 * Delivers answers that a client posts to an open run (`live`), for servers with the Fetch API. The body is
 * `{ threadId, runId, resume }`, with entries as in the `resume` of a chat request. 200 once the run has them. 409 if the user has no such
 * open run, or the request was answered otherwise, and 429 with `too-many-answers` if too many of the user's answers wait for approval
 * requests that were not made yet: the client then sends such an answer with its next request. 503 with
 * `ledger-unavailable` if the answer channel can't be reached: the client retries.
 *
 * @throws CountersignError `invalid-option`
 *
 * @example export const POST = (request) => answerResponse(agent, request, { context: { subject: await userId(request) } })
 */
export async function answerResponse(
  agent: Agent,
  request: Request,
  options: AnswerOptions = {},
): Promise<Response> {
  checkOptions('answerResponse', options, routeRules)
  return respond(answerRequest, agent, request, options)
}

/** Serves a request of the Fetch API. */
export async function respond(
  serve: ServePost,
  agent: Agent,
  request: Request,
  options: AnswerOptions,
): Promise<Response> {
  const { headers } = request
  const head: PostHead = {
    method: request.method,
    type: headers.get('content-type'),
    length: headers.get('content-length'),
    origin: headers.get('origin'),
    host: headers.get('host') ?? new URL(request.url).host,
  }
  const readBody = async (arrival: Arrival) =>
    parseBody(await readText(request.body?.getReader(), arrival), arrival.limits)
  const { body, ...init } = await serve(agent, head, readBody, options)
  return new Response(body, init)
}
