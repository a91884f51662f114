import { redirect } from '@sveltejs/kit'

/** A new conversation. Its id is in the address, so that the conversation can be opened again. */
export const load = () => redirect(307, `/chat/${crypto.randomUUID()}`)
