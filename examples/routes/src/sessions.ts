import { randomBytes } from 'node:crypto'

/** Who is signed in: the application's own, as it has it for every other route. Here, users by session, in memory. */
export class Sessions {
  readonly #users = new Map<string, string>()

  /** Once a person has proved who they are. What comes back goes into a cookie, or to a program as its bearer token. */
  open(user: string): string {
    const id = randomBytes(32).toString('base64url')
    this.#users.set(id, user)
    return id
  }

  end(id: string): void {
    this.#users.delete(id)
  }

  /**
   * Whose request this is, by its `Authorization: Bearer` or its cookie `session`; nobody's without a session that is open. Nothing else
   * of a request says who is speaking: not its body, not its query, not another header.
   */
  userOf(authorization: string | null | undefined, cookie: string | null | undefined): string | undefined {
    const bearer = /^Bearer +([\w-]+)$/i.exec(authorization ?? '')?.[1]
    const id = bearer ?? /(?:^|; )session=([\w-]+)(?:;|$)/.exec(cookie ?? '')?.[1]
    return id === undefined ? undefined : this.#users.get(id)
  }
}

/** The cookie of a session. No script can read it, and no other site can have it sent with a post of its own. */
export function sessionCookie(id: string): string {
  return `session=${id}; Path=/; HttpOnly; Secure; SameSite=Lax`
}
