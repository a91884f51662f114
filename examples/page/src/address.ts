const NAME = 'chat'

/** The conversation that the page's address names, as options of a client. */
export function shownThread(): { readonly threadId?: string } {
  const threadId = new URLSearchParams(location.search).get(NAME)
  return threadId ? { threadId } : {}
}

/** The address of a conversation, or of a new one: a reload, a bookmark and another browser show the same. */
export function addressOf(threadId?: string): string {
  const search = new URLSearchParams(location.search)
  if (threadId === undefined) search.delete(NAME)
  else search.set(NAME, threadId)
  return location.pathname + (search.size > 0 ? `?${search}` : '')
}
