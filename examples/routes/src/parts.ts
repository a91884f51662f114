import type { Agent } from '@countersign/server'
import type { Sessions } from './sessions.js'

/** What the routes of every framework are made of. */
export interface RouteParts {
  readonly agent: Agent
  readonly sessions: Sessions
  /** Origins whose pages may speak to this server beside its own: `https://chat.example.org`. */
  readonly origins: readonly string[]
  /**
   * The run stays open while a person decides, and takes answers at `/api/chat/answers`: for clients with `postAnswers`. Otherwise answers
   * come with the next request to `/api/chat`.
   */
  readonly live: boolean
}

/** A run goes on for so long after its reader has gone, in milliseconds, and can be taken up where it was left. */
export const GO_ON_FOR = 60_000
