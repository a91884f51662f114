import { randomBytes } from 'node:crypto'

/** Who is signed in. A real application uses the authentication it already has; here, users by session id, in memory. */
export class Sessions {
  readonly #users = new Map<string, string>()

  /** Call it once a user has signed in. The returned id goes into a cookie, or to a program as its bearer token. */
  open(user: string): string {
    const id = randomBytes(32).toString('base64url')
    this.#users.set(id, user)
    return id
  }

  end(id: string): void {
    this.#users.delete(id)
  }

  /**
   * The user of a request, by its `Authorization: Bearer` or its cookie `session`; `undefined` without an
   * open session. Nothing else in a request identifies the user: not its body, its query or any other header.
   */
  userOf(authorization: string | null | undefined, cookie: string | null | undefined): string | undefined {
    const bearer = /^Bearer +([\w-]+)$/i.exec(authorization ?? '')?.[1]
    const id = bearer ?? /(?:^|; )session=([\w-]+)(?:;|$)/.exec(cookie ?? '')?.[1]
    return id === undefined ? undefined : this.#users.get(id)
  }
}

/** The cookie of a session. No script can read it, and other sites cannot have it sent with their own POST requests. */
export function sessionCookie(id: string): string {
  return `session=${id}; Path=/; HttpOnly; Secure; SameSite=Lax`
}
