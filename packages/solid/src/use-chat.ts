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
import { type Accessor, createMemo, createRenderEffect, mergeProps, on, onCleanup, untrack } from 'solid-js'
import { useClients } from './provider.js'
import { access, createFields, createReading, type MaybeAccessor, startEffect } from './reading.js'

type Settings<Tools extends ToolMap> = Partial<ChatClientOptions<Tools>>

/**
 * The result of `useChat`, always the same object. The snapshot's fields, the turns and the client are reactive like props
 * (each on its own; do not destructure them). The actions are always the same functions and act on the current client.
 */
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
 * The chat of this component. `useChat()` reads the provider; `useChat({ client })` shares a client; `useChat(options)` creates
 * one or, under a provider, uses the provider's client of that `threadId`, and applies changed options, which may be an accessor
 * or an object with getters. Another `threadId` is another client, never a reset; switching back returns to the first. Disposing
 * the component does not stop the run, and the returned actions still reach it; the option `onDetach: 'stop'` stops it.
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

/** The client itself, for code that subscribes on its own. It changes with `threadId`, `client` or the provider's client. */
export function useChatClient<Tools extends ToolMap = ToolMap>(
  options?: MaybeAccessor<UseChatOptions<Tools>>,
): Accessor<ChatClient<Tools>> {
  const provided = useClients<Tools>()
  const read = (): UseChatOptions<Tools> => (options && access(options)) ?? {}
  const shared = createMemo(() => read().client)
  /** Ignores everything else next to a shared client, which may come in a whole chat or in a component's props. */
  const own = (): Settings<Tools> => {
    if (shared()) return {}
    const { client, ...rest }: Settings<Tools> & { client?: ChatClient<Tools> | undefined } = read()
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
  const page = {}
  createRenderEffect(on(found, ({ clients, client }) => onCleanup(() => clients.leave(client, page))))
  // Before all effects of the page, so that a message sent in one of them already uses these options.
  createRenderEffect(() => {
    const { registry, clients, client } = found()
    if (registry) registry.follow(client, page, own())
    else clients.setOptions(own())
  })
  const client = createMemo(() => found().client)
  startEffect(() => onCleanup(untrack(client().attach)))
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
