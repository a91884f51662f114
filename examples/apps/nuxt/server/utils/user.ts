import type { H3Event } from 'h3'

/** Who sends a request: this comes from your own authentication. A program with one user uses a fixed name. */
export async function userId(_: H3Event): Promise<string> {
  return 'single-user'
}
