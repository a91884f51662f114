import {
  CountersignError,
  getCountersignMetadata,
  omitUndefined,
  type RunAgentInput,
  restoreSteps,
  type ThreadRecord,
  type UIMessage,
} from '@countersign/core'
import { fullSteps } from '@countersign/core/ag-ui'
import type { Connection, ConnectOptions } from './connections/connection.js'
import { type FetchOptions, fetchKinds, fetchServerSentEvents } from './connections/fetch.js'
import { withGrants } from './connections/grants.js'
import { withCountersignProps } from './connections/own-props.js'
import { wait } from './connections/wait.js'
import { checkKinds, invalidOption } from './kinds.js'
import type { Persistence, Persistent } from './persistence/persistence.js'
import { openServerThread, type ServerThreadsShared } from './persistence/server-thread.js'
import { isResponse, ThreadRoute } from './persistence/thread-route.js'
import { type ReconnectOptions, reconnecting, reconnectKinds } from './reconnect.js'
import { serverHistory } from './server-history.js'
import { webStorage } from './web-storage.js'

export type { ReconnectOptions } from './reconnect.js'

export interface ServerThreadsOptions extends FetchOptions, ReconnectOptions {
  /** Milliseconds between two requests for what has changed elsewhere, while a page shows the conversation and nothing runs. Default 5,000. */
  pollEvery?: number | undefined
  /** Milliseconds that a message or an answer waits for a run that another page has open on the same conversation. Default 120,000. */
  busyFor?: number | undefined
  /** The route of `grantsResponse`, for a page that lists and revokes session approvals. Default: none. */
  grants?: string | URL | undefined
  /** Milliseconds to wait for the server to load a conversation. Default 10,000. */
  timeout?: number | undefined
  /**
   * Where answers, outputs and messages are kept until the server has them, so that a reload does not lose them. Use a separate prefix
   * for each signed-in user. Default: `webStorage({ prefix: 'countersign-unsent:' })`; `false`: only in memory.
   */
  local?: Persistence | false | undefined
}

/** Options of a `ChatClient` for conversations that the server keeps. */
export interface ServerThreads {
  readonly connection: Connection
  readonly persistence: Persistent & {
    /**
     * Shows another version of a conversation that a page shows now: the branch that this message is on, one of {@link versionsOf}. All
     * pages show it from then on, and approval requests that were open are cancelled. Rejects with `invalid-argument` if no client with
     * this `threadId` is attached, with `thread-busy` while a run is open, else as a request does.
     */
    showVersion(threadId: string, messageId: string): Promise<void>
  }
}

/**
 * The ids of all versions of a message, oldest first, its own included: an edited message has several, and so has a reply that was generated
 * again. Empty if there is only one.
 */
export function versionsOf({ metadata }: Pick<UIMessage, 'metadata'>): readonly string[] {
  const { versions } = getCountersignMetadata(metadata)
  return Array.isArray(versions) ? versions : []
}

/**
 * For a server that keeps the conversations (`createAgent({ threads, runLog })`), with its route at `url`: POST, and GET and DELETE as
 * `threadResponse` handles them. A client with these options loads its conversation, also while a run streams, which it then rejoins; it
 * sends only what the server does not have, reconnects when its stream breaks, shows what happens in other browsers, and stops a run
 * for all of them. Without a `threadId`, a client begins a new conversation.
 *
 * In development, throws `invalid-option` if an option is invalid.
 *
 * @example new ChatClient({ ...serverThreads('/api/chat'), threadId })
 */
export function serverThreads(url: string | URL, options: ServerThreadsOptions = {}): ServerThreads {
  if (typeof process !== 'undefined' && process.env.NODE_ENV !== 'production')
    checkKinds('serverThreads', options, {
      ...fetchKinds,
      ...reconnectKinds,
      pollEvery: 'number of milliseconds above 0',
      busyFor: 'number of milliseconds above 0',
      grants: 'string | object',
      timeout: 'number of milliseconds above 0',
      local: 'object | boolean',
    })
  const { pollEvery = 5000, busyFor = 120_000, timeout = 10_000, local, grants, ...connecting } = options
  const { attempts, delay, heartbeat, ...fetching } = connecting
  const place = String(url)
  const stream = fetchServerSentEvents(place, { ...fetching, rejoin: true })
  const events = reconnecting(stream, { attempts, delay, heartbeat })
  const route = new ThreadRoute(place, options)
  const unsent = local === undefined ? localStorageIfAny() : local || inMemory()
  const shared: ServerThreadsShared = {
    route,
    local: unsent,
    replaced: new Map(),
    shown: new Set(),
    locks: globalThis.navigator?.locks,
    place,
    pollEvery,
    timeout,
  }
  const sending = withReplaced(serverHistory(events), shared)
  const connection = waitWhileBusy(sending, busyFor)
  return {
    connection: grants === undefined ? connection : withGrants(connection, grants, options),
    persistence: {
      load: (threadId) => unsent.load(threadId),
      save: (threadId, record) => unsent.save(threadId, record),
      remove: (threadId) => unsent.remove(threadId),
      startsThreads: true,
      steps: { ...fullSteps, ...restoreSteps },
      open: (session, host) => {
        if (session.options.tabs)
          throw invalidOption(
            'ChatClient',
            'tabs',
            'left out: with serverThreads, tabs share the conversation on the server',
          )
        return openServerThread(session, host, shared)
      },
      async showVersion(threadId, messageId) {
        const thread = [...shared.shown].find((one) => one.threadId === threadId)
        if (thread) return thread.showVersion(messageId)
        throw new CountersignError('invalid-argument', 'No client with this `threadId` is attached.')
      },
    },
  }
}

/** Names what a request replaces, so that the server keeps it as another version. */
function withReplaced(connection: Connection, { replaced }: ServerThreadsShared): Connection {
  return {
    ...connection,
    connect(input, connect) {
      const by = replaced.get(input.runId)
      if (!by) return connection.connect(input, connect)
      // The server cancels what was open there.
      const resume = input.resume?.filter(({ status }) => status !== 'cancelled')
      return connection.connect(withCountersignProps(omitUndefined({ ...input, resume }), by), connect)
    },
  }
}

/** Milliseconds between two attempts to begin a run. */
const BUSY_MS = 1000

/** One run at a time holds a conversation. What was to be sent meanwhile waits for its end. */
function waitWhileBusy(connection: Connection, busyFor: number): Connection {
  return {
    ...connection,
    async *connect(input: RunAgentInput, connect: ConnectOptions) {
      for (const until = performance.now() + busyFor; ; ) {
        try {
          yield* connection.connect(input, connect)
          return
        } catch (error) {
          if (!isResponse(error, 409, 'thread-busy') || performance.now() >= until) throw error
        }
        await wait(BUSY_MS, connect.signal)
        if (connect.signal.aborted) return
      }
    },
  }
}

function inMemory(): Persistence {
  const records = new Map<string, ThreadRecord>()
  return {
    load: async (threadId) => records.get(threadId),
    save: async (threadId, record) => void records.set(threadId, record),
    remove: async (threadId) => void records.delete(threadId),
  }
}

/** A server that renders the page, and a browser that blocks storage, have none. */
function localStorageIfAny(): Persistence {
  try {
    if (globalThis.localStorage) return webStorage({ prefix: 'countersign-unsent:' })
  } catch {}
  return inMemory()
}
