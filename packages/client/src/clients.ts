import { CountersignError, omitUndefined, type ToolMap } from '@countersign/core'
import { ChatClient } from './client.js'
import type { ChatClientOptions } from './options.js'

type Given<Tools extends ToolMap> = Partial<ChatClientOptions<Tools>>

/**
 * The clients of one provider, by thread: all callers that ask for a thread get the same client. A new thread
 * gets a new client instead of a reset, so that runs of the old one continue and can be found again. No thread
 * also counts as one chat. Everything is in memory, for the lifetime of the registry; no cleanup is needed.
 */
export interface ChatClients<Tools extends ToolMap = ToolMap> {
  /** The client of the provider itself. */
  readonly main: ChatClient<Tools>
  /** The client of a thread (the main one if none is named); created with the provider's options and these if it does not exist yet. */
  get(own: Given<Tools>): ChatClient<Tools>
  /** The same clients with another main one, for a provider whose `client` or `threadId` has changed. */
  switchTo(source: ChatClient<Tools> | Given<Tools>): ChatClients<Tools>
  /** Sets the provider's options. Its clients follow, except for options that a page sets itself. */
  setOptions(options: Given<Tools>): void
  /** A page sets the options `own` of its client, after `before`. Options it no longer sets fall back to the provider's. */
  follow(client: ChatClient<Tools>, own: Given<Tools>, before: Given<Tools>): void
}

/** Creates the registry of a provider from a client, or from options for future clients. */
export function createChatClients<Tools extends ToolMap>(
  source: ChatClient<Tools> | Given<Tools>,
): ChatClients<Tools> {
  // An option that is `undefined` counts as not set.
  let base: Given<Tools> = source instanceof ChatClient ? {} : omitUndefined(source)
  /** By the requested thread; `''` is the chat without one. Reading `client.threadId` would create a random id. */
  const byThread = new Map<string, ChatClient<Tools>>()
  /** The options that pages set for each client, overriding the provider's. */
  const overrides = new WeakMap<ChatClient<Tools>, Given<Tools>>()
  /** The clients created here, and their requested threads. A client from outside keeps its own options. */
  const made = new WeakMap<ChatClient<Tools>, string>()

  function change(client: ChatClient<Tools>, before: Given<Tools>, now: Given<Tools>): void {
    const changes = changed(before, now)
    if (Object.keys(changes).length > 0) client.setOptions(changes)
  }

  function find(options: Given<Tools>): ChatClient<Tools> {
    const { threadId = '', connection } = options
    const unnamed = byThread.get('')
    const known = unnamed?.getSnapshot().threadId === threadId ? unnamed : byThread.get(threadId)
    if (known) return known
    if (!connection) throw new CountersignError('invalid-option', noConnection, { option: 'connection' })
    const client = new ChatClient<Tools>({ ...options, connection })
    made.set(client, threadId)
    return client
  }

  function around(main: ChatClient<Tools>): ChatClients<Tools> {
    return {
      main,
      get(own) {
        if (own.threadId === undefined || own.threadId === main.getSnapshot().threadId) return main
        const client = find({ ...base, ...omitUndefined(own) })
        byThread.set(own.threadId, client)
        return client
      },
      switchTo: (next) => around(next instanceof ChatClient ? next : find(omitUndefined(next))),
      setOptions(options) {
        const before = base
        base = omitUndefined(options)
        // Only now, so that the main client of an abandoned render is not retained.
        const name = made.get(main) ?? main.getSnapshot().threadId
        if (name || made.has(main)) byThread.set(name, main)
        for (const client of new Set(byThread.values())) {
          if (!made.has(client)) continue
          const own = overrides.get(client)
          change(client, { ...before, ...own }, { ...base, ...own })
        }
      },
      follow(client, own, before) {
        const was = overrides.get(client) ?? {}
        const now = { ...was }
        for (const name in before) delete now[name as keyof Given<Tools>]
        Object.assign(now, omitUndefined(own))
        overrides.set(client, now)
        change(client, { ...base, ...was }, { ...base, ...now })
      },
    }
  }

  return around(source instanceof ChatClient ? source : find(base))
}

/** The differences, with `undefined` for options no longer set; without those that cannot change, and a chat keeps its connection. */
function changed<Options extends object>(before: Options, now: Options): Partial<Options> {
  const all: Options = { ...before, ...now }
  const changes: Partial<Options> = {}
  for (const name in all) {
    const fixed = ['threadId', 'initialMessages', 'initialThread', 'statePatch'].includes(name)
    const lost = name === 'connection' && now[name] === undefined
    if (!fixed && !lost && !Object.is(before[name], now[name])) changes[name] = now[name]
  }
  return changes
}

const noConnection = 'This chat has no connection: give `connection` or `client`, or put a provider above it.'
