import { checkOptions } from '../encoding/check-options.js'
import type { Agent } from '../run/agent.js'
import { type RunContext, subjectOf } from '../scope/run-context.js'
import { type Arrival, checkRequest, type Rejection, readText, rejection, tooManyBodies } from './http.js'
import { type QuotaOwner, takeReply, takeWaiting } from './quota.js'
import { type RouteOptions, routeRules } from './route-rules.js'
import { parseBody } from './run-input.js'
import { SSE_HEADERS, type SseFrames, sseBody } from './sse.js'

/** A request, whatever kind of server received it. */
export interface Incoming {
  readonly method: string | undefined
  /** The path with its query, or the whole URL. */
  readonly url: string
  readonly host: string | undefined
  /** Aborted when the client has gone. */
  readonly gone: AbortSignal
  header(name: string): string | undefined
  /** What the application knows about it. Asks the application, so it is called once. */
  context(): RunContext | undefined | Promise<RunContext | undefined>
  /** Its body, parsed. */
  readBody(arrival: Arrival): Promise<unknown>
}

/** A whole response. */
export type Reply = Omit<Rejection, 'body'> & { readonly body: string | null }

/** How one route answers: with the events of a run, or with a whole response. What it throws becomes a rejection. */
export interface Route {
  /** For requests with another method. */
  readonly allow: string
  serve(agent: Agent, request: Incoming, options: RouteOptions): Promise<SseFrames | Reply>
}

/** Answers a request. Never rejects. */
export async function answer(
  { allow, serve }: Route,
  agent: Agent,
  request: Incoming,
  options: RouteOptions,
): Promise<SseFrames | Reply> {
  try {
    return await serve(agent, request, options)
  } catch (error) {
    return rejection(agent, error, request.gone, allow)
  }
}

/** Answers a request of the Fetch API. `name`: the function that was given the options. */
export async function respond(
  name: string,
  route: Route,
  agent: Agent,
  request: Request,
  options: RouteOptions & { readonly context?: RunContext | undefined },
): Promise<Response> {
  checkOptions<object>(name, options, routeRules)
  const { method, url, headers, signal: gone } = request
  const incoming: Incoming = {
    ...{ method, url, gone, host: headers.get('host') ?? new URL(url).host },
    header: (wanted) => headers.get(wanted) ?? undefined,
    context: () => options.context,
    readBody: async (arrival) =>
      parseBody(await readText(request.body?.getReader(), arrival), arrival.limits),
  }
  const served = await answer(route, agent, incoming, options)
  if ('next' in served)
    return new Response(sseBody(served, request, agent.limits), { headers: served.headers ?? SSE_HEADERS })
  const { body, ...init } = served
  return new Response(body, init)
}

/** UTF-16 units of a reply that counts: one user may open many connections, and leave replies unread in each. */
const LONG = 1024

/** A reply of any length: a long one counts in its reader's share until it is sent. */
export function whole(
  { limits }: Agent,
  context: RunContext | undefined,
  { body, headers }: Rejection,
): SseFrames | Reply {
  if (body.length <= LONG) return { status: 200, body, headers }
  const { release } = takeReply(subjectOf(context)?.id, 2 * body.length, limits)
  let frame: string | undefined = body
  const next = async () => {
    const text = frame
    frame = undefined
    if (text === undefined) release()
    return text
  }
  return { headers, next, cancel: release }
}

/** A reply that only says that there is nothing to say. */
export const nothing: Reply = { status: 204, headers: { 'cache-control': 'no-store' }, body: null }

/** Checks the method, type and announced size of a request with a body. */
export function checkPost({ method, header }: Incoming, { limits }: Agent): void {
  checkRequest(method, header('content-type'), header('content-length'), limits)
}

/** Does work with what a request brought, which counts in its sender's share meanwhile: a store may take its time. */
export async function whileHeld<T>(
  owner: QuotaOwner,
  brought: unknown,
  { limits }: Agent,
  work: () => Promise<T>,
): Promise<T> {
  const held = takeWaiting(owner, brought, limits)
  if (held === undefined) throw tooManyBodies()
  return work().finally(held.release)
}
