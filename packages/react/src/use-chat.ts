import {
  type ChatActions,
  type ChatClient,
  type ChatClientOptions,
  type ChatClients,
  type ChatSnapshot,
  createChatClients,
  type ToolMap,
  type Turn,
  turnsOf,
} from '@countersign/client'
import { useEffect, useInsertionEffect, useMemo, useRef, useState, useSyncExternalStore } from 'react'
import { useClients } from './provider.js'

type Settings<Tools extends ToolMap> = Partial<ChatClientOptions<Tools>>

/** The result of `useChat`: the snapshot's fields, its turns, the actions (always the same functions), and the client itself. */
export type UseChat<Tools extends ToolMap = ToolMap> = ChatSnapshot<Tools> &
  ChatActions<Tools> & {
    /** The conversation for rendering: one turn per reply, the same object while nothing in it changes. */
    readonly turns: readonly Turn<Tools>[]
    readonly client: ChatClient<Tools>
  }

/** `{ client }` shares an existing client; options create one, or change those of the provider's client of that `threadId`. */
export type UseChatOptions<Tools extends ToolMap = ToolMap> =
  | { readonly client: ChatClient<Tools> }
  | (Settings<Tools> & { readonly client?: undefined })

/**
 * The chat of this component. `useChat()` reads the provider; `useChat({ client })` shares a client;
 * `useChat(options)` creates one per mount or, under a provider, uses the provider's client of that `threadId`, and
 * applies changed options. Another `threadId` is another client, never a reset; switching back returns to the first.
 * Unmounting does not stop the run, and the returned actions still reach it; the option `onDetach: 'stop'` stops it.
 */
export function useChat<Tools extends ToolMap = ToolMap>(options?: UseChatOptions<Tools>): UseChat<Tools> {
  const client = useChatClient(options)
  const snapshot = useSyncExternalStore(client.subscribe, client.getSnapshot, client.getServerSnapshot)
  // V8 copies an object that has all the keys many times faster than it adds keys to a copy. Not with
  // `Object.assign`, whose result has so many keys that V8 stores it as a dictionary.
  const whole = useMemo(() => ({ ...client.getSnapshot(), ...client.actions, client }), [client])
  return useMemo(
    () => ({
      ...whole,
      ...snapshot,
      // A getter, so that it costs nothing unless read.
      get turns() {
        return turnsOf(snapshot.messages)
      },
    }),
    [whole, snapshot],
  )
}

/** The client itself, for components that subscribe on their own. */
export function useChatClient<Tools extends ToolMap = ToolMap>(
  options?: UseChatOptions<Tools>,
): ChatClient<Tools> {
  const provided = useClients<Tools>()
  const { client: shared, ...own }: Settings<Tools> & { client?: ChatClient<Tools> | undefined } =
    options ?? {}
  const key = { provided, shared, threadId: own.threadId }
  const find = (mine?: ChatClients<Tools>) => {
    const other = shared ? createChatClients<Tools>(shared) : provided
    const clients = other ?? mine?.switchTo(own) ?? createChatClients<Tools>(own)
    return { key, clients, mine: other ? mine : clients, client: clients.get(own) }
  }
  // A client needs no cleanup until it is used, so it may be created in a render that is abandoned.
  const [found, refind] = useState(find)
  let current = found
  if (!isSame(found.key, key)) {
    current = find(found.mine)
    refind(current)
  }
  const { clients, client } = current
  const last = useRef<Settings<Tools>>({})
  // Every render creates a new options object, but its values seldom change.
  const given = isSame(last.current, own) ? last.current : own
  useInsertionEffect(() => () => clients.leave(client, last), [clients, client])
  // Before all other effects, so that a message sent in one of them already uses these options.
  useInsertionEffect(() => {
    last.current = given
    if (clients === provided) clients.follow(client, last, given)
    else clients.setOptions(given)
  }, [clients, provided, client, given])
  useEffect(() => client.attach(), [client])
  return client
}

function isSame<Options extends object>(a: Options, b: Options): boolean {
  const all = { ...a, ...b }
  for (const name in all) if (!Object.is(a[name], b[name])) return false
  return true
}
