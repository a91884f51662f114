import { serverThreads } from '@countersign/client/server-threads'
import { threadList } from '@countersign/client/thread-list'

/** The server that keeps the conversations: the only file to change for a different server. `list` and `edits` may be left out. */
export const server = {
  ...serverThreads('/api/chat', { grants: '/api/grants' }),
  list: threadList('/api/chat'),
  edits: '/api/preview',
}
