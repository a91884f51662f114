import { loadThread } from '@countersign/server'
import { getAgent } from '$lib/server/agent'
import type { PageServerLoad } from './$types'

export const load: PageServerLoad = async ({ params: { threadId }, locals }) => ({
  threadId,
  initialThread: await loadThread(await getAgent(), { subject: locals.user, threadId }),
})
