import { invalid } from './run-input.js'

/** Which pages may speak to an endpoint that browsers let any page reach. */
export interface OriginRule {
  /**
   * Origins (`https://chat.example.org`) whose pages may speak beside those of the server's own host; `'any'` for all. Default: the own
   * host only. What is no browser sends no origin and passes.
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
  // an opaque origin has no host, and so may a request: neither is the other's own
  const own = hostOf(origin)
  if (own && own === host?.toLowerCase()) return
  throw invalid(
    'Pages of this origin may not speak to this endpoint; the option `origins` names those that may.',
    403,
  )
}

/** With its port, where that is not the default one; nothing for an opaque origin (`null`). */
function hostOf(origin: string): string | undefined {
  try {
    return new URL(origin).host
  } catch {
    return undefined
  }
}
