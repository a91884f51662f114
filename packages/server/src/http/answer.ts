import { isRecord, type ResumeEntry } from '@countersign/core'
import type { Delivery } from '../channel/answer-queue.js'
import type { FullLimits } from '../limits.js'
import type { Agent } from '../run/agent.js'
import { type Holder, type RunContext, runKey, subjectOf } from '../scope/run-context.js'
import { json, rejectionOf } from './http.js'
import { checkPost, type Route, respond, whileHeld } from './route.js'
import { checkOrigin, type OriginRule } from './route-rules.js'
import { invalid, readParsedInput } from './run-input.js'

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

/** Delivers answers to the user's open run. 200 once the run has them, 409 if it took none, 429 if too many wait, 503 if unknown. */
export const answerRoute: Route = {
  allow: 'POST',
  async serve(agent, request, options) {
    checkOrigin(request.header('origin'), request.host, options)
    checkPost(request, agent)
    const context = await request.context()
    const holder = subjectOf(context)
    if (holder === undefined)
      throw invalid('A live answer needs a user, but context.subject is not set.', 403)
    const body = await request.readBody({ owner: holder.id, limits: agent.limits })
    const answers = readLiveAnswers(body, agent.limits)
    const deliver = () => deliverAnswers(agent, holder, answers, context)
    const delivery = await whileHeld(holder.id, answers, agent, deliver)
    if (delivery.status !== 'refused') return json(delivery)
    return rejectionOf(delivery.code === 'too-many-answers' ? 429 : 409, delivery)
  },
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
export function answerResponse(
  agent: Agent,
  request: Request,
  options: AnswerOptions = {},
): Promise<Response> {
  return respond('answerResponse', answerRoute, agent, request, options)
}
