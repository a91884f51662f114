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
  /**
   * Sets the options of the provider's chat. The clients that pages have asked for by their thread follow, except for options that a page
   * sets itself. Earlier main clients keep what they had: options such as `connection` or `onFinish` may be about one thread.
   */
  setOptions(options: Given<Tools>): void
  /** A page, any object, sets the options of its client. Options it no longer sets fall back to those of other pages, or the provider's. */
  follow(client: ChatClient<Tools>, page: object, own: Given<Tools>): void
  /** A page no longer shows that client. Its options stay until nothing runs; a client from outside keeps them. */
  leave(client: ChatClient<Tools>, page: object): void
}

/** The options of a client: those of its provider, and over them those of its pages, the latest last. */
interface Layers<Tools extends ToolMap> {
  /** The requested thread, if the client was created here. A client from outside keeps its own options. */
  readonly thread: string | undefined
  /** A page has asked for it by its thread. */
  isAsked?: boolean
  base: Given<Tools>
  readonly pages: Map<object, Given<Tools>>
}

/** Creates the registry of a provider from a client, or from options for future clients. */
export function createChatClients<Tools extends ToolMap>(
  source: ChatClient<Tools> | Given<Tools>,
): ChatClients<Tools> {
  // An option that is `undefined` counts as not set.
  let base: Given<Tools> = source instanceof ChatClient ? {} : omitUndefined(source)
  /** By the requested thread; `''` is the chat without one. Reading `client.threadId` would create a random id. */
  const byThread = new Map<string, ChatClient<Tools>>()
  const layers = new WeakMap<ChatClient<Tools>, Layers<Tools>>()

  function layersOf(client: ChatClient<Tools>, base: Given<Tools> = {}, thread?: string): Layers<Tools> {
    const of = layers.get(client) ?? { thread, base, pages: new Map() }
    layers.set(client, of)
    return of
  }

  function change(client: ChatClient<Tools>, edit: () => void): void {
    const of = layersOf(client)
    const before = whole(of)
    edit()
    const changes = changed(before, whole(of))
    if (Object.keys(changes).length > 0) client.setOptions(changes)
  }

  function find(given: Given<Tools>, own: Given<Tools> = {}): ChatClient<Tools> {
    const options = { ...given, ...own }
    const { threadId = '', connection } = options
    const unnamed = byThread.get('')
    const known = unnamed?.getSnapshot().threadId === threadId ? unnamed : byThread.get(threadId)
    if (known) return known
    if (!connection) throw new CountersignError('invalid-option', noConnection, { option: 'connection' })
    const client = new ChatClient<Tools>({ ...options, connection })
    layersOf(client, given, threadId)
    return client
  }

  function around(main: ChatClient<Tools>): ChatClients<Tools> {
    return {
      main,
      get(own) {
        if (own.threadId === undefined || own.threadId === main.getSnapshot().threadId) return main
        const client = find(base, omitUndefined(own))
        byThread.set(own.threadId, client)
        layersOf(client).isAsked = true
        return client
      },
      switchTo: (next) => around(next instanceof ChatClient ? next : find(omitUndefined(next))),
      setOptions(options) {
        base = omitUndefined(options)
        // Only now, so that the main client of an abandoned render is not retained.
        const { thread } = layersOf(main)
        const name = thread ?? main.getSnapshot().threadId
        if (name || thread === name) byThread.set(name, main)
        for (const client of byThread.values()) {
          const of = layersOf(client)
          if (of.thread !== undefined && (of.isAsked || client === main))
            change(client, () => {
              of.base = base
            })
        }
      },
      follow(client, page, own) {
        const now = omitUndefined(own)
        const { pages } = layersOf(client)
        change(client, () => {
          pages.delete(page)
          if (Object.keys(now).length > 0) pages.set(page, now)
        })
      },
      leave(client, page) {
        const { pages, thread } = layersOf(client)
        const own = pages.get(page)
        if (!own || thread === undefined) return
        const look = () => {
          const isBack = pages.get(page) !== own
          if (!isBack && client.getSnapshot().isLoading) return
          unsubscribe()
          if (!isBack) change(client, () => pages.delete(page))
        }
        // Later, because the callbacks of a run follow what listeners are told of it.
        const unsubscribe = client.subscribe(() => queueMicrotask(look))
        look()
      },
    }
  }

  return around(source instanceof ChatClient ? source : find(base))
}

function whole<Tools extends ToolMap>({ base, pages }: Layers<Tools>): Given<Tools> {
  return Object.assign({}, base, ...pages.values())
}

/** The differences, with `undefined` for options no longer set; without those that cannot change, and a chat keeps its connection. */
function changed<Options extends object>(before: Options, now: Options): Partial<Options> {
  const all: Options = { ...before, ...now }
  const changes: Partial<Options> = {}
  for (const name in all) {
    const fixed = /^(initial|(threadId|statePatch|persistence|tabs)$)/.test(name)
    const lost = name === 'connection' && now[name] === undefined
    if (!fixed && !lost && !Object.is(before[name], now[name])) changes[name] = now[name]
  }
  return changes
}

const noConnection =
  'This chat has no connection: give `connection` or `client` (not a ref), or put a provider above it.'
