import type { Agent } from '@countersign/server'
import type { Sessions } from './sessions.js'

/** What the routes of every framework need. */
export interface RouteParts {
  readonly agent: Agent
  readonly sessions: Sessions
  /** Origins besides the server's own whose pages may call this server, for instance `https://chat.example.org`. */
  readonly origins: readonly string[]
  /**
   * The run stays open while the user decides, and takes answers at `/api/chat/answers`: for clients with
   * `postAnswers`. Otherwise answers come with the next request to `/api/chat`.
   */
  readonly live: boolean
}

/** How long a run continues after its client has disconnected, in milliseconds. Until then the client can rejoin it. */
export const GO_ON_FOR = 60_000
