import { randomBytes } from 'node:crypto'
import type { CookieOptions, Request } from 'express'
import { database } from './database.js'

database.exec('create table if not exists sessions (id text primary key, user text not null)')
const insert = database.prepare('insert into sessions (id, user) values (?, ?)')
const find = database.prepare('select user from sessions where id = ?')
const remove = database.prepare('delete from sessions where id = ?')

/** No script can read it, and other sites cannot have it sent with their own POST requests. Add `secure: true` behind HTTPS. */
export const cookie: CookieOptions = { httpOnly: true, sameSite: 'lax' }

const idOf = ({ headers }: Request) => /(?:^|; )session=([\w-]+)/.exec(headers.cookie ?? '')?.[1] ?? ''

/** Returns the id of the session, for the cookie. A real application has checked a password before. */
export function signIn(user: string): string {
  const id = randomBytes(32).toString('base64url')
  insert.run(id, user)
  return id
}

export function signOut(request: Request): void {
  remove.run(idOf(request))
}

/** The user of a request, by its cookie and by nothing else in it. */
export function userOf(request: Request): string | undefined {
  const row = find.get(idOf(request))
  return row === undefined ? undefined : String(row.user)
}
