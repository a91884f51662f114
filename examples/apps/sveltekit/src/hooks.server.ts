import type { Handle } from '@sveltejs/kit'

/** Who sends a request: this comes from your own authentication. A program with one user uses a fixed name. */
export const handle: Handle = ({ event, resolve }) => {
  event.locals.user = 'single-user'
  return resolve(event)
}
