import { isCountersignError, isRecord } from '@countersign/core'
import { threadsOf } from '../conversation/load-thread.js'
import type { Agent } from '../run/agent.js'
import type { RunContext } from '../scope/run-context.js'
import { subjectOf } from './holder.js'
import { invalid } from './run-input.js'

const MAX_LIMIT = 1000
const MAX_TITLE = 1024

/** One page of a user's conversations: `{ threads, cursor }`, the most recently active first. */
export async function listThreads(
  agent: Agent,
  query: URLSearchParams,
  context: RunContext | undefined,
): Promise<unknown> {
  const limit = Number(query.get('limit') ?? 50)
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_LIMIT)
    throw invalid(`\`limit\` must be a number from 1 to ${MAX_LIMIT}.`)
  const cursor = query.get('cursor') ?? undefined
  const page = await threadsOf(agent)
    .list(context?.subject ?? null, { limit, cursor })
    .catch((error: unknown) => {
      if (isCountersignError(error) && error.code === 'invalid-argument')
        throw invalid('`cursor` must be that of an earlier page.')
      throw error
    })
  return {
    threads: page.threads.map(({ threadId, title, createdAt, updatedAt, run }) => ({
      ...{ threadId, title, createdAt, updatedAt },
      isRunning: run !== undefined && !run.lapsed,
    })),
    cursor: page.cursor,
  }
}

/** Sets the title in `body`. `false`: this user has no such conversation. */
export function renameThread(
  agent: Agent,
  threadId: string,
  body: unknown,
  context: RunContext | undefined,
): Promise<boolean> {
  const title = isRecord(body) ? body.title : undefined
  if (typeof title !== 'string' || title.length > MAX_TITLE)
    throw invalid(`\`title\` must be a text of at most ${MAX_TITLE} characters.`)
  return threadsOf(agent).rename({ owner: context?.subject ?? null, threadId }, title)
}

/** Removes a conversation, and revokes what was approved for its session. A run that is open loses it, and ends. */
export async function removeThread(
  agent: Agent,
  threadId: string,
  context: RunContext | undefined,
): Promise<void> {
  await threadsOf(agent).remove({ owner: context?.subject ?? null, threadId })
  const subject = subjectOf(context)?.id
  if (subject !== undefined) await agent.grants.revoke(subject, { threadId })
}
