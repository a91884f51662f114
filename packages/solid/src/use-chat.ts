import {
  type ChatActions,
  type ChatClient,
  type ChatClientOptions,
  type ChatClients,
  type ChatSnapshot,
  createActions,
  createChatClients,
  type ToolMap,
  type Turn,
  turnsOf,
} from '@countersign/client'
import {
  type Accessor,
  createEffect,
  createMemo,
  createRenderEffect,
  mergeProps,
  on,
  onCleanup,
  untrack,
} from 'solid-js'
import { useClients } from './provider.js'
import { access, createFields, createReading, type MaybeAccessor } from './reading.js'

type Settings<Tools extends ToolMap> = Partial<ChatClientOptions<Tools>>

/**
 * What `useChat` gives, always the same object: the snapshot's fields, its turns and the client, reactive like props (each tells only of its own
 * changes; do not destructure them), and the actions, always the same functions, which act on the client of the moment.
 */
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
 * The chat of this component. `useChat()` reads the provider; `useChat({ client })` shares a client; `useChat(options)` makes one, or,
 * under a provider, takes the provider's client of that `threadId`, and follows the options, which may be an accessor or an object with
 * getters. Another `threadId` is another client, never a reset, and going back finds the first. The end of the component leaves the run
 * alone, and what this returned still reaches it; the option `onDetach: 'stop'` ends it.
 */
export function useChat<Tools extends ToolMap = ToolMap>(
  options?: MaybeAccessor<UseChatOptions<Tools>>,
): UseChat<Tools> {
  const client = useChatClient(options)
  const fields = createFields(createSnapshot(client))
  return mergeProps(
    fields,
    createActions<Tools>((use) => untrack(() => use(client()))),
    {
      get turns() {
        return turnsOf(fields.messages)
      },
      get client() {
        return client()
      },
    },
  )
}

/** The client itself, for those who subscribe on their own. It is another one when `threadId`, `client` or the provider's is another. */
export function useChatClient<Tools extends ToolMap = ToolMap>(
  options: MaybeAccessor<UseChatOptions<Tools>> = {},
): Accessor<ChatClient<Tools>> {
  const provided = useClients<Tools>()
  const shared = createMemo(() => access(options).client)
  /** Nothing of what else a shared client may come with, such as a whole chat or a component's props. */
  const own = (): Settings<Tools> => {
    if (shared()) return {}
    const { client, ...rest }: Settings<Tools> & { client?: ChatClient<Tools> | undefined } = access(options)
    return rest
  }
  const threadId = createMemo(() => own().threadId)
  let mine: ChatClients<Tools> | undefined
  const found = createMemo(() => {
    threadId()
    const given = shared()
    const registry = given ? undefined : provided?.()
    return untrack(() => {
      const other = given ? createChatClients<Tools>(given) : registry
      const clients = other ?? mine?.switchTo(own()) ?? createChatClients<Tools>(own())
      if (!other) mine = clients
      return { registry, clients, client: clients.get(own()) }
    })
  })
  // Before any effect of the page, so that whoever sends in one already sends with these options.
  createRenderEffect<{ client?: ChatClient<Tools>; own: Settings<Tools> }>(
    (last) => {
      const { registry, clients, client } = found()
      const now = { client, own: own() }
      if (registry) registry.follow(client, now.own, last.client === client ? last.own : {})
      else clients.setOptions(now.own)
      return now
    },
    { own: {} },
  )
  const client = createMemo(() => found().client)
  createEffect(on(client, ({ attach }) => onCleanup(attach())))
  return client
}

export function createSnapshot<Tools extends ToolMap>(
  client: Accessor<ChatClient<Tools>>,
): Accessor<ChatSnapshot<Tools>> {
  return createReading(
    (changed) => client().subscribe(changed),
    (inTheBeginning) => (inTheBeginning ? client().getServerSnapshot() : client().getSnapshot()),
  )
}
