import { isCountersignError, isRecord } from '@countersign/core'
import { type LoadedThread, type OpenRun, readThread, threadsOf } from '../conversation/load-thread.js'
import { sha256 } from '../encoding/bytes.js'
import type { Agent } from '../run/agent.js'
import { type RunContext, subjectOf } from '../scope/run-context.js'
import { json, type Rejection, rejectionOf } from './http.js'
import { rejoinRoute, type ThreadOptions } from './rejoin.js'
import { nothing, type Reply, type Route, respond, whole } from './route.js'
import { checkId, invalid, queryOf } from './run-input.js'
import type { SseFrames } from './sse.js'

/**
 * Responds to a GET with `threadId` in the query with `{ threadId, version, title, createdAt, messages, run, usage }`: the conversation as AG-UI messages,
 * with its open approval requests, and the run that is open now. The `ETag` changes with each of them; with it in `If-None-Match`, an
 * unchanged thread gets 304 and is not read. With `since`, `messages` are only those of later versions, of any branch. 404 if this user has
 * no such thread; 204 with `unknown=204`, because browsers report a 404 in the console of the page.
 *
 * A PATCH with `messageId` shows the version of the conversation that this message is on (`agent.showVersion`), and gets the same response.
 *
 * With `runId` as well, a GET is handled like `rejoinResponse`, and so is a DELETE, which stops that run.
 *
 * Without `threadId`, a GET lists the user's conversations, the most recently active first: `{ threads, cursor }`, where each has `threadId`,
 * `title`, `createdAt`, `updatedAt` and `isRunning`. `limit` is at most 1,000 (default 50); `cursor` continues an earlier page. A PATCH with
 * `{ "title": "…" }` renames a conversation. A DELETE without `runId` removes it for good (`agent.removeThread`): 204 in any case.
 *
 * @throws CountersignError `invalid-option`
 *
 * @example
 * export const GET = async (request) => threadResponse(agent, request, { context: { subject: await userId(request) } })
 * export const PATCH = GET // and DELETE
 */
export function threadResponse(
  agent: Agent,
  request: Request,
  options: ThreadOptions = {},
): Promise<Response> {
  return respond('threadResponse', threadRoute, agent, request, options)
}

export const threadRoute: Route = {
  allow: 'GET, PATCH, DELETE',
  async serve(agent, request, options) {
    const { method } = request
    const query = queryOf(request.url)
    if (method !== 'PATCH' && query.has('runId')) return rejoinRoute.serve(agent, request, options)
    const context = await request.context()
    const reply = (found: Rejection) => whole(agent, context, found)
    if (method === 'GET' && !query.has('threadId'))
      return reply(json(await listThreads(agent, query, context)))
    const id = (name: string) => checkId(name, query.get(name), agent.limits)
    const threadId = id('threadId')
    switch (method) {
      case 'GET':
        return sendThread(agent, threadId, query, request.header('if-none-match'), context, reply)
      case 'PATCH': {
        if (query.has('messageId')) {
          await agent.showVersion({ threadId, messageId: id('messageId') }, context, request.gone)
          return sendThread(agent, threadId, query, undefined, context, reply)
        }
        // Nothing else of the body is kept while the store is waited for.
        const title = titleIn(await request.readBody({ owner: subjectOf(context)?.id, limits: agent.limits }))
        const key = { owner: context?.subject ?? null, threadId }
        return (await threadsOf(agent).rename(key, title)) ? nothing : unknownThread()
      }
      case 'DELETE':
        await agent.removeThread({ threadId }, context, request.gone)
        return nothing
      default:
        throw invalid('Send a GET, PATCH or DELETE request.', 405)
    }
  },
}

function unknownThread(): Reply {
  return rejectionOf(404, { code: 'thread-unknown', message: 'There is no such thread.' })
}

async function sendThread(
  agent: Agent,
  threadId: string,
  query: URLSearchParams,
  known: string | undefined,
  context: RunContext | undefined,
  reply: (found: Rejection) => SseFrames | Reply,
): Promise<SseFrames | Reply> {
  const threads = threadsOf(agent)
  const key = { owner: context?.subject ?? null, threadId }
  if (known !== undefined) {
    // The header of the thread alone, without messages.
    const now = await threads.load(key, Number.MAX_SAFE_INTEGER)
    if (now !== undefined && known === (await tagOf(now)))
      return { status: 304, headers: { etag: known, 'cache-control': 'private, no-cache' }, body: null }
  }
  const thread = await readThread(threads, key, readSince(query.get('since')))
  if (thread === undefined) return query.get('unknown') === '204' ? nothing : unknownThread()
  return reply(json(thread, { 'cache-control': 'private, no-cache', etag: await tagOf(thread) }))
}

function readSince(text: string | null): number | undefined {
  if (text === null) return undefined
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw invalid('`since` must be a version.')
}

type Tagged = Pick<LoadedThread, 'version' | 'title' | 'createdAt'> & {
  readonly run?: Pick<OpenRun, 'runId' | 'lapsed'> | undefined
}

/** A thread that was removed and begun again has another time of creation. */
async function tagOf({ version, title, run, createdAt }: Tagged): Promise<string> {
  return `"${await sha256(JSON.stringify([version, title, run?.runId, run?.lapsed, createdAt]))}"`
}

const MAX_LIMIT = 1000
const MAX_TITLE = 1024

/** One page of a user's conversations: `{ threads, cursor }`, the most recently active first. */
async function listThreads(
  agent: Agent,
  query: URLSearchParams,
  context: RunContext | undefined,
): Promise<unknown> {
  const limit = Number(query.get('limit') ?? 50)
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT)
    throw invalid(`\`limit\` must be a number from 1 to ${MAX_LIMIT}.`)
  const cursor = query.get('cursor') ?? undefined
  const page = await threadsOf(agent)
    .list(context?.subject ?? null, { limit, cursor })
    .catch((error: unknown) => {
      if (isCountersignError(error) && error.code === 'invalid-argument')
        throw invalid('`cursor` must be that of an earlier page.')
      throw error
    })
  return {
    threads: page.threads.map(({ threadId, title, createdAt, updatedAt, run }) => ({
      ...{ threadId, title, createdAt, updatedAt },
      isRunning: run !== undefined && !run.lapsed,
    })),
    cursor: page.cursor,
  }
}

function titleIn(body: unknown): string {
  const title = isRecord(body) ? body.title : undefined
  if (typeof title === 'string' && title.length <= MAX_TITLE) return title
  throw invalid(`\`title\` must be a text of at most ${MAX_TITLE} characters.`)
}
