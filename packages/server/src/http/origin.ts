import { invalid } from './run-input.js'

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
