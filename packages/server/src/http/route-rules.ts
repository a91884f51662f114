import type { RunAgentInput } from '@countersign/core'
import {
  either,
  flag,
  listOf,
  MAX_DELAY,
  method,
  milliseconds,
  numberFrom,
  object,
  oneOf,
  text,
  wholeNumber,
} from '../encoding/check-options.js'
import type { RunContext } from '../scope/run-context.js'
import { invalid } from './run-input.js'

export interface ChatOptions {
  /** What the application knows about this request: `subject` from its own authentication, and services for its tools. */
  readonly context?: RunContext | undefined
  /** The longest silence, in milliseconds: a comment is sent before. Default 15,000. */
  readonly keepAlive?: number | undefined
  /**
   * Changes the validated input before it runs: replaces the history by that of the application's own store, or reads answers in the
   * application's own format. If it throws, the request is rejected.
   */
  readonly prepare?: ((input: RunAgentInput) => RunAgentInput | Promise<RunAgentInput>) | undefined
  /**
   * A live channel: the run stays open while the user decides, and takes the answers that `answerResponse` delivers. Only for clients that
   * send answers there (`postAnswers`): any other would wait for the end of the run, and the run for the answer. Needs `context.subject`.
   * Default `false`.
   */
  readonly live?: boolean | undefined
  /**
   * Milliseconds that a run continues after its last reader in this process has gone, so that it can be rejoined (`rejoinResponse`).
   * Over HTTP, a user who presses stop looks the same. Needs `context.subject`. Default 0: the model is stopped at once.
   */
  readonly goOnFor?: number | undefined
  /**
   * Receives a promise that resolves when the run has ended, is stored, and its readers have the end (see `agent.drain`), which may be after
   * the response (`goOnFor`). For platforms that stop work after the response unless they know of it:
   * `waitUntil: (work) => ctx.waitUntil(work)` on Cloudflare Workers, `waitUntil` of `@vercel/functions` on Vercel. Default: none, for servers
   * that keep running.
   */
  readonly waitUntil?: ((work: Promise<void>) => void) | undefined
}

/** The options of all routes. How the context is given depends on the server. */
export type RouteOptions = Omit<ChatOptions, 'context'> & OriginRule

/** What each option of a route must be. Every route takes all names, so that an application can give one object to all its routes. */
export const routeRules = {
  context: object,
  keepAlive: milliseconds,
  prepare: method,
  live: flag,
  goOnFor: numberFrom(0, MAX_DELAY),
  waitUntil: method,
  origins: either(listOf('origins', text), oneOf('any')),
  maxRuns: wholeNumber,
}

/** The same for routes that get the context from each request. */
export const handlerRules = { ...routeRules, context: method }

/** Which pages may use an endpoint that any page can reach from a browser. */
export interface OriginRule {
  /**
   * Origins (`https://chat.example.org`) whose pages are allowed besides those of the server's own host; `'any'` for all. Default: only
   * the own host. Clients other than browsers send no origin and are allowed.
   */
  readonly origins?: readonly string[] | 'any' | undefined
}

/**
 * Checks the `Origin` of a request against its `Host`.
 *
 * @throws CountersignError `invalid-request` with status 403
 */
export function checkOrigin(
  origin: string | null | undefined,
  host: string | null | undefined,
  { origins = [] }: OriginRule,
): void {
  if (origin === null || origin === undefined || origins === 'any' || origins.includes(origin)) return
  // An opaque origin has no host, and a request may have none either: they must not match.
  const own = hostOf(origin)
  if (own && own === host?.toLowerCase()) return
  throw invalid(
    'Pages of this origin may not use this endpoint; the option `origins` lists those that may.',
    403,
  )
}

/** The host, with its port unless it is the default one; undefined for an opaque origin (`null`). */
function hostOf(origin: string): string | undefined {
  try {
    return new URL(origin).host
  } catch {
    return undefined
  }
}
