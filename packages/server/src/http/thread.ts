import { type LoadedThread, type OpenRun, readThread, threadsOf } from '../conversation/load-thread.js'
import { checkOptions } from '../encoding/check-options.js'
import { sha256 } from '../encoding/digest.js'
import type { Agent } from '../run/agent.js'
import type { RunContext } from '../scope/run-context.js'
import { runKey } from '../scope/run-key.js'
import { subjectOf } from './holder.js'
import { type Arrival, readText, rejection, rejectionOf } from './http.js'
import { readersOf } from './readers.js'
import { rejoinResponse } from './rejoin.js'
import { routeRules } from './route-rules.js'
import { checkId, invalid, parseBody, queryOf } from './run-input.js'
import { listThreads, removeThread, renameThread } from './thread-list.js'

export interface ThreadOptions {
  /** `subject`: whose thread it is. */
  readonly context?: RunContext | undefined
  /** Milliseconds of silence after which a comment is sent to who rejoins a run. Default 15,000. */
  readonly keepAlive?: number | undefined
}

/**
 * Responds to a GET with `threadId` in the query with `{ threadId, version, title, createdAt, messages, run, usage }`: the conversation as AG-UI messages,
 * with its open approval requests, and the run that is open now. The `ETag` changes with each of them; with it in `If-None-Match`, an
 * unchanged thread gets 304 and is not read. With `since`, `messages` are only those of later versions, of any branch. 404 if this user has
 * no such thread; 204 with `unknown=204`, because browsers report a 404 in the console of the page.
 *
 * A PATCH with `messageId` shows the version of the conversation that this message is on (`agent.showVersion`), and gets the same response.
 *
 * With `runId` as well, a GET is handled like {@link rejoinResponse}, and a DELETE stops that run if it is open in this process: 204 in any case.
 *
 * Without `threadId`, a GET lists the user's conversations, the most recently active first: `{ threads, cursor }`, where each has `threadId`,
 * `title`, `createdAt`, `updatedAt` and `isRunning`. `limit` is at most 1,000 (default 50); `cursor` continues an earlier page. A PATCH with
 * `{ "title": "…" }` renames a conversation. A DELETE without `runId` removes it for good, with its session approvals: 204 in any case.
 *
 * @throws CountersignError `invalid-option`
 *
 * @example
 * export const GET = async (request) => threadResponse(agent, request, { context: { subject: await userId(request) } })
 * export const PATCH = GET // and DELETE
 */
export async function threadResponse(
  agent: Agent,
  request: Request,
  options: ThreadOptions = {},
): Promise<Response> {
  checkOptions('threadResponse', options, routeRules)
  const query = queryOf(request.url)
  if (request.method === 'GET' && query.has('runId')) return rejoinResponse(agent, request, options)
  try {
    const asked: ThreadRequest = {
      ...{ method: request.method, query, known: request.headers.get('if-none-match') },
      readBody: async (arrival) => parseBody(await readText(request.body?.getReader(), arrival)),
    }
    const { status, headers, body } = await threadRequest(agent, asked, options.context)
    return new Response(body, { status, headers })
  } catch (error) {
    const { body, ...init } = rejection(agent, error, 'GET, PATCH, DELETE')
    return new Response(body, init)
  }
}

/** A request for a thread. `known`: the tag of what the client has. */
export interface ThreadRequest {
  readonly method: string | undefined
  readonly query: URLSearchParams
  readonly known: string | null
  readBody(arrival: Arrival): Promise<unknown>
}

interface ThreadReply {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | null
}

/** The reply to a request for a thread, to show another version of it, or to stop a run. */
export async function threadRequest(
  agent: Agent,
  { method, query, known, readBody }: ThreadRequest,
  context: RunContext | undefined,
): Promise<ThreadReply> {
  if (method === 'GET' && !query.has('threadId')) {
    const headers = { 'content-type': 'application/json', 'cache-control': 'no-store' }
    const list = await listThreads(agent, query, context)
    return { status: 200, headers, body: JSON.stringify(list) }
  }
  const threadId = checkId('threadId', query.get('threadId'), agent.limits)
  switch (method) {
    case 'GET':
      return sendThread(agent, threadId, query, known, context)
    case 'PATCH': {
      if (query.has('messageId')) {
        const messageId = checkId('messageId', query.get('messageId'), agent.limits)
        await agent.showVersion({ threadId, messageId }, context)
        return sendThread(agent, threadId, query, null, context)
      }
      const body = await readBody({ owner: subjectOf(context)?.id, limits: agent.limits })
      return (await renameThread(agent, threadId, body, context)) ? done : unknownThread()
    }
    case 'DELETE':
      if (query.has('runId')) stopRun(threadId, checkId('runId', query.get('runId'), agent.limits), context)
      else await removeThread(agent, threadId, context)
      return done
    default:
      throw invalid('Send a GET, PATCH or DELETE request.', 405)
  }
}

const done: ThreadReply = { status: 204, headers: { 'cache-control': 'no-store' }, body: null }

function unknownThread(): ThreadReply {
  return rejectionOf(404, { code: 'thread-unknown', message: 'There is no such thread.' })
}

async function sendThread(
  agent: Agent,
  threadId: string,
  query: URLSearchParams,
  known: string | null,
  context: RunContext | undefined,
): Promise<ThreadReply> {
  const threads = threadsOf(agent)
  const key = { owner: context?.subject ?? null, threadId }
  if (known !== null) {
    // The header of the thread alone, without messages.
    const now = await threads.load(key, Number.MAX_SAFE_INTEGER)
    if (now !== undefined && known === (await tagOf(now)))
      return { status: 304, headers: { etag: known, 'cache-control': 'private, no-cache' }, body: null }
  }
  const thread = await readThread(threads, key, readSince(query.get('since')))
  if (thread === undefined) return query.get('unknown') === '204' ? done : unknownThread()
  const headers = {
    'content-type': 'application/json',
    'cache-control': 'private, no-cache',
    etag: await tagOf(thread),
  }
  return { status: 200, headers, body: JSON.stringify(thread) }
}

function readSince(text: string | null): number | undefined {
  if (text === null) return undefined
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw invalid('`since` must be a version.')
}

/** Another user's run, or one of another process, is not found, and goes on. */
function stopRun(threadId: string, runId: string, context: RunContext | undefined): void {
  const holder = subjectOf(context)
  if (holder) readersOf.get(runKey(holder, threadId, runId))?.stop()
}

type Tagged = Pick<LoadedThread, 'version' | 'title' | 'createdAt'> & {
  readonly run?: Pick<OpenRun, 'runId' | 'lapsed'> | undefined
}

/** A thread that was removed and begun again has another time of creation. */
async function tagOf({ version, title, run, createdAt }: Tagged): Promise<string> {
  return `"${await sha256(JSON.stringify([version, title, run?.runId, run?.lapsed, createdAt]))}"`
}
