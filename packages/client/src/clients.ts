import { CountersignError, omitUndefined, type ToolMap } from '@countersign/core'
import { ChatClient } from './client.js'
import type { ChatClientOptions } from './options.js'

type Given<Tools extends ToolMap> = Partial<ChatClientOptions<Tools>>

/**
 * The clients of one provider, by thread: whoever asks for a thread gets the same client. A new thread is another client, never a
 * reset, so that what runs in the old one goes on, and coming back finds it. No thread is one chat, too. All of it is memory only, and kept
 * as long as the registry is: one that is never used needs no end.
 */
export interface ChatClients<Tools extends ToolMap = ToolMap> {
  /** The client of the provider itself. */
  readonly main: ChatClient<Tools>
  /** The client of a thread (the main one where none is named), made with the provider's options and these where there is none yet. */
  get(own: Given<Tools>): ChatClient<Tools>
  /** The same clients with another main one: what a provider turns to when its `client` or `threadId` is another. */
  switchTo(source: ChatClient<Tools> | Given<Tools>): ChatClients<Tools>
  /** The provider's options are now these. Its clients follow, but for what a page gave itself. */
  setOptions(options: Given<Tools>): void
  /** A page gives its client `own`, and gave it `before`. What it gives no longer is as the provider says. */
  follow(client: ChatClient<Tools>, own: Given<Tools>, before: Given<Tools>): void
}

/** Makes the registry of a provider out of a client, or out of options for the clients to come. */
export function createChatClients<Tools extends ToolMap>(
  source: ChatClient<Tools> | Given<Tools>,
): ChatClients<Tools> {
  // What is given as `undefined` is not given.
  let base: Given<Tools> = source instanceof ChatClient ? {} : omitUndefined(source)
  /** By the thread each was asked for; `''` is the chat of no thread. To ask a client for its own would give it a random one. */
  const byThread = new Map<string, ChatClient<Tools>>()
  /** What pages gave to each client, over what the provider gives to all it made. */
  const overrides = new WeakMap<ChatClient<Tools>, Given<Tools>>()
  /** The clients made here, and the thread each was made for. One that came from outside has options of its own. */
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
        // Only now, so that a main client of a render that came to nothing is kept by nobody.
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

/** What differs, with `undefined` for what is given no longer; without what cannot change, and a chat never loses its connection. */
function changed<Options extends object>(before: Options, now: Options): Partial<Options> {
  const all: Options = { ...before, ...now }
  const changes: Partial<Options> = {}
  for (const name in all) {
    const fixed = ['threadId', 'initialMessages', 'statePatch'].includes(name)
    const lost = name === 'connection' && now[name] === undefined
    if (!fixed && !lost && !Object.is(before[name], now[name])) changes[name] = now[name]
  }
  return changes
}

const noConnection = 'This chat has no connection: give `connection` or `client`, or put a provider above it.'
