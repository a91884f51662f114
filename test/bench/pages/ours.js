import { ChatClient, stream } from '@countersign/client'
import { answer, ofRun, paced } from './paced.js'

/** The client that all pages of ours show. */
export function openChat({ history, deltas, notify }) {
  const client = new ChatClient({
    threadId: 'thread',
    notify,
    initialMessages: history.map(({ id, role, text }) => ({ id, role, parts: [{ type: 'text', text }] })),
    connection: stream((run) => paced(ofRun(run, answer(deltas)))),
  })
  return { client, play: () => client.sendMessage('go') }
}
