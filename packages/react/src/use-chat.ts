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

/** What `useChat` gives: the snapshot's fields, its turns, the actions (always the same functions), and the client itself. */
export type UseChat<Tools extends ToolMap = ToolMap> = ChatSnapshot<Tools> &
  ChatActions<Tools> & {
    /** The conversation as it is shown: one turn per answer, the same object while nothing in it changes. */
    readonly turns: readonly Turn<Tools>[]
    readonly client: ChatClient<Tools>
  }

/** `{ client }` shares a client you made; options make one, or change those of the provider's client of that `threadId`. */
export type UseChatOptions<Tools extends ToolMap = ToolMap> =
  | { readonly client: ChatClient<Tools> }
  | (Settings<Tools> & { readonly client?: undefined })

/**
 * The chat of this component. `useChat()` reads the provider; `useChat({ client })` shares a client; `useChat(options)` makes one per
 * mount, or, under a provider, takes the provider's client of that `threadId`, and follows the options. Another `threadId` is another
 * client, never a reset, and going back finds the first. Unmounting leaves the run alone, and what this returned still reaches it; the
 * option `onDetach: 'stop'` ends it.
 */
export function useChat<Tools extends ToolMap = ToolMap>(options?: UseChatOptions<Tools>): UseChat<Tools> {
  const client = useChatClient(options)
  const snapshot = useSyncExternalStore(client.subscribe, client.getSnapshot, client.getServerSnapshot)
  // V8 copies an object that has all the names many times faster than it adds names to a copy; not one that `Object.assign` has made of
  // so many names, which it keeps as a dictionary.
  const whole = useMemo(() => ({ ...client.getSnapshot(), ...client.actions, client }), [client])
  return useMemo(
    () => ({
      ...whole,
      ...snapshot,
      // Pages that do not read it pay nothing for it.
      get turns() {
        return turnsOf(snapshot.messages)
      },
    }),
    [whole, snapshot],
  )
}

/** The client itself, for those who subscribe on their own. */
export function useChatClient<Tools extends ToolMap = ToolMap>(
  options: UseChatOptions<Tools> = {},
): ChatClient<Tools> {
  const provided = useClients<Tools>()
  const { client: shared, ...own }: Settings<Tools> & { client?: ChatClient<Tools> | undefined } = options
  const key = { provided, shared, threadId: own.threadId }
  const find = (mine?: ChatClients<Tools>) => {
    const other = shared ? createChatClients<Tools>(shared) : provided
    const clients = other ?? mine?.switchTo(own) ?? createChatClients<Tools>(own)
    return { key, clients, mine: other ? mine : clients, client: clients.get(own) }
  }
  // A client holds nothing until it is used, so one that is found in a render that comes to nothing needs no end.
  const [found, refind] = useState(find)
  let current = found
  if (!isSame(found.key, key)) {
    current = find(found.mine)
    refind(current)
  }
  const { clients, client } = current
  const last = useRef<{ client?: ChatClient<Tools>; own: Settings<Tools> }>({ own: {} })
  // Options are an object of their own in every render; what they hold seldom changes.
  const given = isSame(last.current.own, own) ? last.current.own : own
  // Before any other effect, so that whoever sends in one already sends with these options.
  useInsertionEffect(() => {
    const before = last.current.client === client ? last.current.own : {}
    last.current = { client, own: given }
    if (clients === provided) clients.follow(client, given, before)
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
