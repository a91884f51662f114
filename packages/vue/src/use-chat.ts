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
import { type ComputedRef, computed, type MaybeRefOrGetter, onScopeDispose } from 'vue'
import { given, mapped } from './given.js'
import { useClients } from './provider.js'
import { untracked, useReading, whileShown } from './reading.js'

/** The result of `useChat`: refs of the snapshot's fields, its turns and the client, and the actions (always the same functions). */
export type UseChat<Tools extends ToolMap = ToolMap> = Refs<ChatSnapshot<Tools>> &
  ChatActions<Tools> & {
    /** The conversation for rendering: one turn per reply, the same object while nothing in it changes. */
    readonly turns: ComputedRef<readonly Turn<Tools>[]>
    readonly client: ComputedRef<ChatClient<Tools>>
  }

type Refs<Fields> = { readonly [Name in keyof Fields]: ComputedRef<Fields[Name]> }

/** `{ client }` shares an existing client; options create one, or change those of the provider's client of that `threadId`. */
export type UseChatOptions<Tools extends ToolMap = ToolMap> =
  | { readonly client: ChatClient<Tools> }
  | (Partial<ChatClientOptions<Tools>> & { readonly client?: undefined })

/**
 * The chat of this component or effect scope. `useChat()` reads the provider; `useChat({ client })` shares a client;
 * `useChat(options)` creates one or, under a provider, uses the provider's client of that `threadId`, and applies
 * changed options. Another `threadId` is another client, never a reset; switching back returns to the first. Ending
 * the scope does not stop the run, and the returned actions still reach it; the option `onDetach: 'stop'` stops it.
 */
export function useChat<Tools extends ToolMap = ToolMap>(
  options?: MaybeRefOrGetter<UseChatOptions<Tools> | undefined>,
): UseChat<Tools> {
  const client = useFoundClient<Tools>(options)
  const snapshot = useSnapshot(client)
  const fields = mapped(snapshot.value, (name) => computed(() => snapshot.value[name]))
  // These functions outlive a client: they act on the current one, even if a setup function has destructured them.
  const actions = createActions<Tools>((use) => untracked(() => use(client.value)))
  const turns = computed(() => turnsOf(snapshot.value.messages))
  return { ...(fields as Refs<ChatSnapshot<Tools>>), turns, ...actions, client }
}

/** The client itself, for code that subscribes on its own. */
export function useChatClient<Tools extends ToolMap = ToolMap>(
  options?: MaybeRefOrGetter<UseChatOptions<Tools> | undefined>,
): ComputedRef<ChatClient<Tools>> {
  const client = useFoundClient<Tools>(options)
  whileShown(client, (shown) => shown.attach())
  return client
}

/** The client, without attaching it; `useReading` attaches it on behalf of its readers. */
export function useFoundClient<Tools extends ToolMap = ToolMap>(
  options?: MaybeRefOrGetter<UseChatOptions<Tools> | undefined>,
): ComputedRef<ChatClient<Tools>> {
  const provided = useClients<Tools>()
  let found: Found<Tools> | undefined
  let mine: ChatClients<Tools> | undefined
  const page = {}
  const leave = () => found?.clients.leave(found.client, page)
  onScopeDispose(leave, true)
  // Resolved lazily, at the latest with the next flush, so that options that change one after another, as
  // props do, are applied together. A client needs no cleanup until it is used.
  return computed(() => {
    const { client: shared, ...own } = given<Tools>(options)
    const from = shared ? undefined : provided?.value
    const isSame = found?.from === from && found?.shared === shared && found?.threadId === own.threadId
    const same = isSame ? found : undefined
    const other = same?.clients ?? (shared ? createChatClients<Tools>(shared) : from)
    const clients = other ?? mine?.switchTo(own) ?? createChatClients<Tools>(own)
    if (!other) mine = clients
    const client = same?.client ?? clients.get(own)
    if (found?.client !== client) leave()
    if (from) from.follow(client, page, own)
    else clients.setOptions(own)
    found = { shared, from, threadId: own.threadId, clients, client }
    return client
  })
}

interface Found<Tools extends ToolMap> {
  readonly shared: ChatClient<Tools> | undefined
  readonly from: ChatClients<Tools> | undefined
  readonly threadId: string | undefined
  readonly clients: ChatClients<Tools>
  readonly client: ChatClient<Tools>
}

/** The whole snapshot as one value. */
export function useSnapshot<Tools extends ToolMap>(
  client: ComputedRef<ChatClient<Tools>>,
): ComputedRef<ChatSnapshot<Tools>> {
  return useReading(() => {
    const { subscribe, getSnapshot, getServerSnapshot } = client.value
    return [client.value, subscribe, getSnapshot, getServerSnapshot]
  })
}
