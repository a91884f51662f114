/**
 * Headers for a page of another origin, where that origin is named: then it may read the answer, with the person's cookie. Every other page
 * gets none, and its browser keeps the answer from it. The server's own pages need none.
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
