import { ChatClient, stream } from '@countersign/client'
import { answer, paced } from './paced.js'

/** The client that all pages of ours show. */
export function openChat({ history, deltas, notify }) {
  const client = new ChatClient({
    threadId: 'thread',
    notify,
    initialMessages: history.map(({ id, role, text }) => ({ id, role, parts: [{ type: 'text', text }] })),
    connection: stream(async function* ({ threadId, runId }) {
      yield { type: 'RUN_STARTED', threadId, runId }
      yield* paced(answer(deltas))
      yield { type: 'RUN_FINISHED', threadId, runId }
    }),
  })
  return { client, play: () => client.sendMessage('go') }
}
