/**
 * CORS headers for a page of another origin. A listed origin may read the response, with the user's cookie.
 * Any other gets no headers, so its browser withholds the response. The server's own pages need none.
 */
export function corsHeaders(
  origin: string | null | undefined,
  origins: readonly string[],
): Readonly<Record<string, string>> {
  if (origin === null || origin === undefined || !origins.includes(origin)) return {}
  return {
    'access-control-allow-origin': origin,
    'access-control-allow-credentials': 'true',
    'access-control-allow-methods': 'GET, POST, DELETE',
    'access-control-allow-headers': 'content-type, authorization, last-event-id',
    vary: 'origin',
  }
}
