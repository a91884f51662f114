import { loadThread } from '@countersign/server'

/** A conversation, for the server's own rendering. */
export default defineEventHandler(async (event) => {
  const threadId = getRouterParam(event, 'threadId') ?? ''
  return { initialThread: await loadThread(await getAgent(), { subject: await userId(event), threadId }) }
})
