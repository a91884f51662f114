import { type LoadedThread, type OpenRun, readThread, threadsOf } from '../conversation/load-thread.js'
import { sha256 } from '../encoding/digest.js'
import type { Agent } from '../run/agent.js'
import type { RunContext } from '../scope/run-context.js'
import { rejection, rejectionOf } from './http.js'
import { checkId, invalid, queryOf } from './run-input.js'

export interface ThreadOptions {
  /** `subject`: whose thread it is. */
  readonly context?: RunContext | undefined
}

/**
 * Responds to a GET with `threadId` in the query with `{ threadId, version, title, createdAt, messages, run }`: the conversation as AG-UI messages,
 * with its open approval requests, and the run that is open now. The `ETag` changes with each of them; with it in `If-None-Match`, an
 * unchanged thread gets 304 and is not read. 404 if this user has no such thread.
 *
 * @example if (request.method === 'GET') return threadResponse(agent, request, { context: { subject: await userId(request) } })
 */
export async function threadResponse(
  agent: Agent,
  request: Request,
  { context }: ThreadOptions = {},
): Promise<Response> {
  try {
    if (request.method !== 'GET') throw invalid('Send a GET request.', 405)
    const threadId = checkId('threadId', queryOf(request.url).get('threadId'))
    const known = request.headers.get('if-none-match')
    const { status, headers, body } = await threadRequest(agent, threadId, context, known)
    return new Response(body, { status, headers })
  } catch (error) {
    const { body, ...init } = rejection(error, 'GET')
    return new Response(body, init)
  }
}

interface ThreadReply {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string | null
}

/** The reply to a request for a thread; `known` is the tag of what the client has. */
export async function threadRequest(
  agent: Agent,
  threadId: string,
  context: RunContext | undefined,
  known: string | null,
): Promise<ThreadReply> {
  const threads = threadsOf(agent)
  const key = { owner: context?.subject ?? null, threadId }
  if (known !== null) {
    // The header of the thread alone, without messages.
    const now = await threads.load(key, Number.MAX_SAFE_INTEGER)
    if (now !== undefined && known === (await tagOf(now)))
      return { status: 304, headers: { etag: known, 'cache-control': 'private, no-cache' }, body: null }
  }
  const thread = await readThread(threads, key)
  if (thread === undefined)
    return rejectionOf(404, { code: 'thread-unknown', message: 'There is no such thread.' })
  const headers = {
    'content-type': 'application/json',
    'cache-control': 'private, no-cache',
    etag: await tagOf(thread),
  }
  return { status: 200, headers, body: JSON.stringify(thread) }
}

type Tagged = Pick<LoadedThread, 'version' | 'title' | 'createdAt'> & {
  readonly run?: Pick<OpenRun, 'runId' | 'lapsed'> | undefined
}

/** A thread that was removed and begun again has another time of creation. */
async function tagOf({ version, title, run, createdAt }: Tagged): Promise<string> {
  return `"${await sha256(JSON.stringify([version, title, run?.runId, run?.lapsed, createdAt]))}"`
}
